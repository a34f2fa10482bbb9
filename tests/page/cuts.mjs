// A thousand cuts: two clients written by others follow a run through a wire that breaks at random bytes, while its agent goes
// on. Each sees every event once, in order, and stops for good when the run has ended.
import http from "node:http";
import net from "node:net";
import { EventSource } from "eventsource";
import { Agent, Person, base, call, check, code, device, events, snapshot, until } from "./lib.mjs";

const COUNT = 2500, CUTS = 500, READERS = 2, MEAN = 1500;
const KINDS = ["run.queued", "run.started", "run.phase", "run.agent_exited", "run.changes_judged", "check.started", "check.finished", "run.completed",
	"run.failed", "run.cancelled", "model.called", "note", "message"];
// With characters of one to four bytes, so that some cuts are within one.
const TEXT = "ein \u00fcberlanges \u20ac\u20ac\u20ac \u{1F600}\u{1F600} " + "x".repeat(40);

// Numbers that can be had again: PINFOLD_SEED.
let seed = Number(process.env.PINFOLD_SEED ?? Date.now() % 1000000) >>> 0;
const random = () => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return seed / 4294967296; };

// Passes everything on, and streams only until some byte; half of them end orderly, half with a reset. Within an answer's head
// it is always a reset: a head that ends early and orderly counts as one in HTTP/1.1 (Chromium), and is not an event stream's.
class Wire {
	cuts = 0;
	answers = [];
	#left;
	constructor(cuts) {
		this.#left = cuts;
		this.server = net.createServer((down) => this.#serve(down));
	}
	async open() {
		await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
		this.url = `http://127.0.0.1:${this.server.address().port}`;
		return this;
	}
	close() { this.server.close(); }
	#serve(down) {
		const at = new URL(base), up = net.connect(Number(at.port), at.hostname);
		let limit = Infinity, seen = 0, first = true, head = true;
		down.on("error", () => up.destroy()).on("close", () => up.destroy());
		up.on("error", () => down.destroy()).on("close", () => down.end());
		down.on("data", (b) => {
			if (/^GET \S+\/events\?/.test(b.toString("latin1"))) {
				first = head = true;
				seen = 0;
				if (this.#left > 0) limit = 1 + Math.floor(random() * 2 * MEAN);
			}
			up.write(b);
		});
		up.on("data", (b) => {
			if (first) {
				first = false;
				this.answers.push(b.toString("latin1", 9, 12));
			}
			// As long as it was, so no length changes: nobody here has two seconds for each of a thousand.
			b = Buffer.from(b.toString("latin1").replace("retry: 2000", "retry: 0001"), "latin1");
			const room = limit - seen;
			if (b.length < room && b.includes("\r\n\r\n")) head = false;
			seen += b.length;
			if (b.length < room || this.#left <= 0) {
				down.write(b);
				return;
			}
			limit = Infinity;
			this.#left--;
			this.cuts++;
			up.destroy();
			if (room > 0 && b.subarray(0, room).includes("\r\n\r\n")) head = false;
			down.write(b.subarray(0, room), () => !head && random() < 0.5 ? down.end() : down.resetAndDestroy());
		});
	}
}

// What a client's listener keeps of an event; runs in both worlds.
const follow = (Source, url, kinds, more) => {
	const s = new Source(url, more), seen = [];
	for (const k of kinds) s.addEventListener(k, (e) => seen.push([e.lastEventId, e.type, e.data]));
	return { s, seen };
};

const judge = (who, seen, lines) => {
	let at = seen.findIndex(([id, type, data], i) => id !== String(i + 1) || data !== lines[i] || type !== JSON.parse(lines[i]).event_type);
	if (at < 0 && seen.length !== lines.length) at = Math.min(seen.length, lines.length);
	check(`${who} saw each of ${lines.length} events once, in order`, at < 0, { seen: seen.length, at, got: seen[at], want: lines[at] });
};

export default async (chrome) => {
	console.log(`seed ${seed}`);
	const token = await device(`cuts ${seed}`), a = await Agent.start();
	const path = `/v1/runs/${a.run}/events?stream=1`;
	const wires = { node: await new Wire(CUTS).open(), chromium: await new Wire(CUTS).open() };
	const node = Array.from({ length: READERS }, () => follow(EventSource, wires.node.url + path, KINDS,
		{ fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: "Bearer " + token } }) }));
	const p = await Person.come(chrome, { token });
	await p.page.goto(wires.chromium.url + "/healthz");
	await p.page.evaluate(([follow, url, kinds, n]) => {
		const f = eval(follow);
		window.streams = Array.from({ length: n }, () => f(EventSource, url, kinds));
	}, [`(${follow})`, path, KINDS, READERS]);
	// A part at once, a part while they look on.
	await a.tell({ do: "many", kind: "note", text: TEXT, count: COUNT - 1000 });
	await a.tell({ do: "many", kind: "note", text: TEXT, count: 1000, at_once: 20, pause: 0.05 });
	await a.end();
	const r = await call("GET", `/v1/runs/${a.run}/events`, { token }), lines = r.text.trim().split("\n");
	check("the run has all of them", lines.length > COUNT && lines.every((l, i) => JSON.parse(l).sequence === i + 1), lines.length);
	const closed = () => p.page.evaluate(() => window.streams.every((x) => x.s.readyState === 2));
	await until(async () => node.every((x) => x.s.readyState === 2) && await closed());
	for (const [i, x] of node.entries()) judge(`eventsource ${i + 1}`, x.seen, lines);
	for (const [i, seen] of (await p.page.evaluate(() => window.streams.map((x) => x.seen))).entries()) judge(`Chromium ${i + 1}`, seen, lines);
	for (const [name, w] of Object.entries(wires)) {
		check(`${w.cuts} cuts of ${name}'s streams`, w.cuts === CUTS, w.cuts);
		check(`${name} was told that it is over, and stopped`, w.answers.filter((x) => x === "204").length === READERS && w.answers.at(-1) === "204", w.answers.slice(-8));
	}
	check("eventsource does not come again", node.every((x) => x.s.readyState === 2));
	check("nor does Chromium", await closed());
	await p.leave();
	for (const w of Object.values(wires)) w.close();
};
