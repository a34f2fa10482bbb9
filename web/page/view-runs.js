// The runs of the tenant, newest first, below what their agents ask.
import {call, polled} from "./api.js";
import {Deck} from "./cards.js";
import {Part, button, el, fill, foreign, time} from "./dom.js";
import {pill, trouble} from "./sections.js";
import {PHASE, REASON, plural} from "./words.js";

function row(r) {
	const more = r.terminalReason && r.terminalReason !== "completed" ? REASON[r.terminalReason]?.[0] ?? r.terminalReason :
		r.cancelRequested && r.phase ? "being cancelled" : PHASE[r.phase] ?? "";
	return el("li", {}, el("a", {class: "run", href: `#/run/${encodeURIComponent(r.runId)}`},
		pill(r.status, r.phase),
		el("span", {class: "run-title"}, el("span", {}, r.title ? foreign(r.title) : ["Run ", el("code", {}, r.runId.slice(0, 8))]),
			more !== "" && el("span", {class: "meta"}, more)),
		el("span", {class: "meta run-when"}, time(r.createdAt), el("span", {}, foreign(r.agent)))));
}

export function runsView(main, _, {signal, inbox, nudge}) {
	const first = polled("v1/runs?limit=50");
	const title = el("h1", {tabindex: "-1"}, "Runs");
	const asks = el("section", {class: "cards", "aria-label": "Questions", hidden: true});
	const looked = el("div", {}), asked = el("div", {}), list = el("ul", {class: "plain runs"});
	const more = button("Show older runs", older, {class: "more", hidden: true});
	const deck = new Deck(asks, {changed: nudge});
	let newest = [], rest = [], next = null, timer = 0;

	const part = new Part(list, runs => runs.length > 0 ? runs.map(row) : el("li", {class: "empty"},
		el("p", {}, "No runs yet."), el("p", {class: "meta"}, "Start one with ", el("code", {}, "pinfold run"), " or POST /v1/runs; it appears here.")));

	function draw() {
		const there = new Set(newest.map(r => r.runId));
		part.show([...newest, ...rest.filter(r => !there.has(r.runId))]);
		more.hidden = next === null;
	}

	async function older() {
		more.disabled = true;
		try {
			const {body} = await call("GET", `v1/runs?limit=50&after=${encodeURIComponent(next)}`);
			rest = rest.concat(body.runs);
			next = body.next;
			draw();
			trouble(asked, null);
		} catch (e) {
			trouble(asked, e);
		}
		more.disabled = false;
	}

	// Halfway between two looks into the inbox: whichever of the two sees first that a run asks, that is half the time.
	function halfway() {
		const period = inbox.seconds * 1000;
		const left = (inbox.asked + period / 2 - performance.now()) % period;
		return left < 300 ? left + period : left;
	}

	async function load() {
		let wait = 0;
		try {
			const page = document.hidden ? null : await first.get(signal);
			if (page !== null) {
				newest = page.runs;
				if (rest.length === 0)
					next = page.next;
				draw();
				if (newest.some(r => r.phase === "awaiting_approval" && !(inbox.pending ?? []).some(q => q.runId === r.runId)))
					nudge();
			}
			trouble(looked, null);
		} catch (e) {
			if (signal.aborted || e.status === 401)
				return;
			trouble(looked, e, () => { clearTimeout(timer); load(); });
			wait = 6000;
		}
		if (!signal.aborted)
			timer = setTimeout(load, wait || halfway());
	}
	signal.addEventListener("abort", () => clearTimeout(timer));
	const others = el("p", {class: "meta others", hidden: true});
	const hear = pending => {
		deck.show(pending);
		const n = inbox.count - pending.length;
		others.textContent = `${plural(n, "more question waits", "more questions wait")}; they come up as these are answered.`;
		others.hidden = n <= 0;
	};
	inbox.heard.add(hear);
	signal.addEventListener("abort", () => inbox.heard.delete(hear));
	fill(main, el("div", {class: "head"}, title), looked, asks, others, list, asked, more);
	if (inbox.pending !== null)
		hear(inbox.pending);
	title.focus({preventScroll: true});
	load();
}
