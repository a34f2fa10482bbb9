// A run's events, each exactly once and in order. Not the browser's EventSource: that one tells only of types whose
// names it was given, and an agent names its own; nor does it say why a server refused. What arrives is the same stream.
import {request, runPath} from "./api.js";

export const LAST = new Set(["run.completed", "run.failed", "run.cancelled"]);

// Takes what arrives of an event stream, in pieces of any size, and gives its frames: {id, event, data}, or {retry}.
export class Frames {
	constructor() {
		this.rest = "";
		this.frame = {};
	}
	// The frames that this piece completes.
	push(piece) {
		const out = [];
		const lines = (this.rest + piece).split("\n");
		this.rest = lines.pop();
		for (const raw of lines) {
			const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
			if (line === "") {
				if (Object.keys(this.frame).length > 0)
					out.push(this.frame);
				this.frame = {};
				continue;
			}
			const colon = line.indexOf(":");
			if (colon === 0)
				continue; // a heartbeat
			const name = colon < 0 ? line : line.slice(0, colon);
			const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
			if (name === "data" && this.frame.data !== undefined)
				this.frame.data += "\n" + value;
			else if (name === "data" || name === "id" || name === "event")
				this.frame[name] = value;
			else if (name === "retry" && /^\d+$/.test(value))
				out.push({retry: Number(value)});
		}
		return out;
	}
}

// NDJSON in pieces of any size: the objects that this piece completes.
export class Lines {
	constructor() {
		this.rest = "";
	}
	push(piece) {
		const lines = (this.rest + piece).split("\n");
		this.rest = lines.pop();
		return lines.filter(l => l.trim() !== "").map(l => JSON.parse(l));
	}
}

// Lets each sequence through once, whatever is sent again after a connection broke.
export class Once {
	constructor() {
		this.last = 0;
	}
	take(event) {
		if (!Number.isSafeInteger(event?.sequence) || event.sequence <= this.last)
			return false;
		this.last = event.sequence;
		return true;
	}
}

// Waits until begin(done) calls done, or until signal; nothing stays behind on the signal.
const until = (signal, begin) => new Promise(resolve => {
	let end = () => {};
	const done = () => {
		signal.removeEventListener("abort", done);
		end();
		resolve();
	};
	signal.addEventListener("abort", done);
	end = begin(done) ?? end;
	if (signal.aborted)
		done();
});

const pause = (ms, signal) => until(signal, done => {
	const timer = setTimeout(done, ms);
	return () => clearTimeout(timer);
});

// A browser has six connections to a server, whatever its tabs: one that nobody looks at gives its own back after a while.
const HIDDEN_MS = 20000;

const seen = signal => document.hidden ? until(signal, done => {
	const look = () => document.hidden || done();
	document.addEventListener("visibilitychange", look);
	return () => document.removeEventListener("visibilitychange", look);
}) : null;

// follow(run, {events, state, signal}): events(list) gets them as they come; state("live"|"polling"|"waiting"|"ended").
// Follows until the run's last event, or until signal.
export async function follow(run, {events, state, signal}) {
	const once = new Once();
	let ended = false, retry = 2000, failures = 0, poll = 0;
	const deliver = list => {
		const fresh = list.filter(e => once.take(e));
		ended = ended || fresh.some(e => LAST.has(e.event_type));
		if (fresh.length > 0)
			events(fresh);
	};
	while (!ended && !signal.aborted) {
		await seen(signal);
		try {
			if (poll > 0) {
				poll--;
				await read(run, `/events?after=${once.last}`, new Lines(), signal, objects => deliver(objects));
				state("polling");
			} else {
				const status = await read(run, `/events?stream=1&after=${once.last}`, new Frames(), signal, frames => {
					state("live");
					for (const f of frames)
						retry = f.retry ?? retry;
					deliver(frames.filter(f => f.data !== undefined).map(f => JSON.parse(f.data)));
				});
				ended = ended || status === 204;
			}
			failures = 0;
		} catch (e) {
			if (signal.aborted || e.status === 401 || e.status === 404)
				return;
			// No stream to be had (too many of them, a server without them): asked for instead, and tried again later.
			if (e.status >= 400 && e.status < 500 && poll === 0) {
				poll = 15;
				continue;
			}
			state("waiting");
			failures = Math.min(failures + 1, 5);
		}
		if (!ended)
			await pause(retry * (1 + failures) / 2 * (0.8 + Math.random() * 0.4), signal);
	}
	if (ended)
		state("ended");
}

// One connection to its end. A stream that is silent for three heartbeats is taken for dead.
async function read(run, path, taker, signal, deliver) {
	const own = new AbortController();
	const stop = () => own.abort();
	let timer = setTimeout(stop, 45000), hidden = 0;
	const look = () => {
		clearTimeout(hidden);
		hidden = document.hidden ? setTimeout(stop, HIDDEN_MS) : 0;
	};
	document.addEventListener("visibilitychange", look);
	signal.addEventListener("abort", stop);
	try {
		const response = await request("GET", runPath(run, path), {
			signal: own.signal, headers: path.includes("stream") ? {accept: "text/event-stream"} : {}});
		if (response.body === null || response.status === 204)
			return response.status;
		const decoder = new TextDecoder();
		const reader = response.body.getReader();
		for (;;) {
			const {done, value} = await reader.read();
			clearTimeout(timer);
			timer = setTimeout(stop, 45000);
			if (done)
				return response.status;
			deliver(taker.push(decoder.decode(value, {stream: true})));
		}
	} finally {
		clearTimeout(timer);
		clearTimeout(hidden);
		document.removeEventListener("visibilitychange", look);
		signal.removeEventListener("abort", stop);
		stop();
	}
}
