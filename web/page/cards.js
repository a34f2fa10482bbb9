// The questions of agents. Each card keeps its element and its place from when it comes until it is put away; what was
// decided is said in it, and the next card does not move up under the finger.
import {call, runPath} from "./api.js";
import {settled, watch} from "./card-guard.js";
import {button, el, fill, foreign, say, time, verbatim} from "./dom.js";
import {answered} from "./push.js";
import {DECISION, EFFECT} from "./words.js";

// Of longer previews a part is shown at first, and nothing of them is allowed before the rest was opened.
const LINES = 30, CHARACTERS = 2400;
const KEPT = 12;
// The server's nonce is good for a minute, by its clock; this device's may be set otherwise.
const ARMED_MS = 55000;

// What a server's refusal of an answer means here. true: the question is over.
const REFUSAL = {
	__proto__: null,
	run_is_terminal: [true, "The run has ended; this is not decided any more."],
	approval_expired: [true, "Too late: nobody answered in time, and the agent went on without."],
	approval_not_found: [true, "This question is gone."],
	run_not_found: [true, "This run is gone."],
	confirm_invalid: [false, "The second tap came too late. Tap again from the beginning."],
	digest_mismatch: [false, "The question has changed since it was shown. Here is what it is now; read it again."],
	decision_not_offered: [false, "The card does not show all of it, so it can be allowed once only."],
};

// What the agent says beside. However long it is, the answers stay in reach.
function said(name, text) {
	if (text === "")
		return null;
	const long = text.length > 320 || text.split("\n").length > 8;
	return [el("dt", {}, name), el("dd", {}, long ? el("div", {class: "long", tabindex: "0", role: "group", "aria-label": name}, foreign(text)) : foreign(text))];
}

class Card {
	constructor(deck, q) {
		this.deck = deck;
		this.q = q;
		this.busy = this.over = false;
		this.confirm = null;
		this.armedAt = 0;
		this.note = el("p", {class: "note", role: "status", tabindex: "-1"});
		this.element = el("article", {class: "card", "data-request": q.requestId});
		this.build();
	}

	build() {
		const q = this.q;
		const title = EFFECT[q.effect];
		const heading = `ask-${q.runId}-${q.requestId}`;
		this.always = null;
		this.preview = this.buildPreview(q.preview);
		this.once = button("Allow once", () => this.decide("allow_once"), {class: "primary"});
		if (!q.textShortened && q.preview.trim() !== "")
			this.always = button("Always in this run", () => this.decide("allow_session"), {class: "quiet"});
		this.actions = el("div", {class: "actions", role: "group", "aria-label": "Your answer"}, this.once,
			button("Deny", () => this.decide("deny")), this.always,
			button("Stop the run", () => this.decide("cancel"), {class: "quiet danger"}));
		this.actions.classList.toggle("three", this.always === null);
		this.element.setAttribute("aria-labelledby", heading);
		this.element.classList.toggle("shortened", q.textShortened);
		fill(this.element,
			el("h2", {id: heading}, title ?? ["Do this? ", foreign(q.effect)]),
			el("p", {class: "meta"}, "Asked ", time(q.requestedAt, true), ", waits until ", time(q.expiresAt, true),
				this.deck.oneRun ? null : [" · ", el("a", {href: `#/run/${encodeURIComponent(q.runId)}`}, q.title ? foreign(q.title) : `run ${q.runId.slice(0, 8)}`)]),
			q.textShortened && el("p", {class: "warning"}, el("strong", {}, "Text shortened"),
				" — what you see is not the whole of it, or was changed to be shown. It can be allowed once only."),
			this.preview,
			el("dl", {class: "facts"},
				said("Reason", q.reason), said("Why it must ask", q.policyReason),
				el("dt", {}, "Action"), el("dd", {}, foreign(q.actionId === "" ? q.requestId : q.actionId))),
			el("details", {class: "digest"}, el("summary", {}, "Digest ", el("code", {}, q.digest.slice(0, 12))),
				el("p", {}, el("code", {}, q.digest)),
				el("p", {class: "meta"}, "Your answer is for exactly this. The agent is told the same digest.")),
			this.actions, this.note);
		watch(this.actions);
	}

	buildPreview(text) {
		if (text.trim() === "")
			return el("p", {class: "warning"}, "The agent does not say what it would do.");
		const lines = text.split("\n");
		this.clipped = lines.length > LINES || text.length > CHARACTERS;
		const pre = verbatim(text, "preview");
		pre.setAttribute("role", "group");
		pre.setAttribute("aria-label", "What would be done");
		if (!this.clipped)
			return pre;
		pre.classList.add("clipped");
		this.more = button(`Show all ${lines.length > 1 ? lines.length + " lines" : text.length + " characters"}`, () => this.open(), {class: "more"});
		this.pre = pre;
		return el("div", {}, pre, this.more);
	}

	open() {
		this.clipped = false;
		this.pre.classList.remove("clipped");
		this.pre.tabIndex = -1;
		this.pre.focus({preventScroll: true});
		this.more.remove();
	}

	say(text, urgent = false) {
		fill(this.note, text);
		this.note.classList.toggle("wrong", urgent);
	}

	async decide(decision) {
		if (this.busy || this.over)
			return;
		if (!settled(this.actions) || (this.confirm !== null && performance.now() - this.armedAt < 500))
			return this.say("The card has just moved or changed, so that tap did not count. Tap again.");
		if (this.clipped && decision.startsWith("allow")) {
			this.open();
			return this.say("There was more to read. Read all of it, then tap again.");
		}
		this.busy = true;
		const focused = document.activeElement, here = this.element.contains(focused);
		this.lock(true);
		const confirm = decision === "allow_session" ? this.confirm : null;
		if (confirm === null)
			this.disarm();
		this.say("Sending…");
		try {
			const answer = await call("POST", runPath(this.q.runId, `/approvals/${encodeURIComponent(this.q.requestId)}`),
				{decision, digest: this.q.digest, ...(confirm === null ? {} : {confirm})});
			if (answer.status === 202)
				this.arm(answer.body.confirm);
			else
				this.finish(`${DECISION[answer.body.decision]}, by this device.${decision === "cancel" ? await this.stop() : ""}`, answer.body.decision);
		} catch (e) {
			await this.refused(e);
		} finally {
			this.busy = false;
			this.lock(false);
			// Buttons that were disabled or are gone lost the focus; who acted here and went nowhere since stays here.
			if (here && document.activeElement === document.body)
				(this.over ? this.note : focused).focus({preventScroll: true});
			this.deck.changed();
		}
	}

	// An agent that is told to stop may go on all the same. A run that is cancelled does not.
	async stop() {
		try {
			await call("POST", runPath(this.q.runId, "/cancel"));
			return " The run is cancelled.";
		} catch (e) {
			return ` But its run could not be cancelled (${e.code}), so it may go on: cancel it on its own page.`;
		}
	}

	// The first tap of two. The nonce is good for this device, this question and these bytes, for a minute.
	arm(confirm) {
		this.confirm = confirm;
		this.armedAt = performance.now();
		this.always.textContent = "Tap again: always";
		this.always.classList.add("armed");
		this.say("Then the agent may do exactly this again in this run without asking. Tap once more to say so.");
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			this.disarm();
			this.say("Not confirmed in time; nothing was decided.");
		}, ARMED_MS);
	}

	disarm() {
		clearTimeout(this.timer);
		this.confirm = null;
		if (this.always !== null) {
			this.always.textContent = "Always in this run";
			this.always.classList.remove("armed");
		}
	}

	async refused(e) {
		const [over, words] = REFUSAL[e.code] ?? [false, null];
		this.disarm();
		if (e.code === "already_decided")
			return this.settle(e.body);
		if (over)
			return this.finish(words, "expired");
		if (e.code === "unreachable")
			return this.say("The server was not reached, so it is not known whether that arrived. You can tap again: the first answer stays.", true);
		this.say(`${words ?? e.message} (${e.code}${e.requestId ? ", request " + e.requestId : ""})`, true);
	}

	// It was decided elsewhere: by whom, if the server still says so.
	async settle(known) {
		let found = known;
		try {
			const {body} = await call("GET", runPath(this.q.runId, "/approvals"));
			found = body.decisions.find(d => d.requestId === this.q.requestId) ?? known;
			if (found === null && body.pending.some(q => q.requestId === this.q.requestId))
				return;
		} catch {
			// What is known will do.
		}
		if (this.over)
			return;
		if (found?.decision === undefined)
			return this.finish("This question is over.", "expired");
		const by = found.device === undefined ? "" : ["by ", foreign(found.device)];
		this.finish([DECISION[found.decision] ?? found.decision, by === "" ? "." : " before you, ", by], found.decision);
	}

	finish(words, decision) {
		this.over = true;
		this.disarm();
		answered(this.q.runId, this.q.requestId).catch(() => {});
		this.element.classList.add("over", decision);
		this.actions.replaceChildren();
		fill(this.note, words, " ", el("a", {href: `#/run/${encodeURIComponent(this.q.runId)}`}, "See the run"));
		this.note.classList.remove("wrong");
		this.actions.append(button("Put away", () => this.deck.drop(this), {class: "quiet"}));
	}

	lock(yes) {
		for (const b of this.actions.querySelectorAll("button"))
			b.disabled = yes;
		this.element.setAttribute("aria-busy", String(yes));
	}
}

// deck.show(questions): each {runId, ...as in a run's pendingApprovals}. changed() is called after each answer.
export class Deck {
	constructor(element, {oneRun = false, changed = () => {}} = {}) {
		this.element = element;
		this.oneRun = oneRun;
		this.changed = changed;
		this.cards = new Map();
	}

	show(questions) {
		const there = new Set();
		for (const q of questions) {
			const key = q.runId + "/" + q.requestId;
			const card = this.cards.get(key);
			there.add(key);
			if (card === undefined) {
				const fresh = new Card(this, q);
				this.cards.set(key, fresh);
				this.element.append(fresh.element);
				watch(fresh.actions);
				say(`A question: ${EFFECT[q.effect] ?? "an agent wants to do something."}`, true);
			} else if (!card.over && !card.busy && card.q.digest !== q.digest) {
				card.q = q;
				card.disarm();
				card.build();
			}
		}
		for (const [key, card] of this.cards)
			if (!there.has(key) && !card.over && !card.busy)
				card.settle(null);
		const over = [...this.cards.values()].filter(c => c.over);
		for (const card of over.slice(0, Math.max(0, over.length - KEPT)))
			this.drop(card);
		this.element.hidden = this.cards.size === 0;
	}

	focus(request) {
		for (const card of this.cards.values())
			if (card.q.requestId === request) {
				card.element.tabIndex = -1;
				card.element.focus();
				card.element.scrollIntoView({block: "start"});
				return true;
			}
		return false;
	}

	drop(card) {
		this.cards.delete(card.q.runId + "/" + card.q.requestId);
		card.element.remove();
		this.element.hidden = this.cards.size === 0;
	}
}
