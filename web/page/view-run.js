// One run: what it asks, how it stands, what happens, what it came to.
import {call, polled, runPath} from "./api.js";
import {Deck} from "./cards.js";
import {Part, el, fill, say, twice} from "./dom.js";
import {artifacts, changes, checks, decisions, facts, grants, outcome, pill, task, trouble} from "./sections.js";
import {follow} from "./stream.js";
import {Timeline} from "./timeline.js";
import {DECISION, PHASE, STATUS, isOver} from "./words.js";

export function runView(main, [run, request], {signal, nudge}) {
	const snapshot = polled(runPath(run));
	const title = el("h1", {tabindex: "-1"}, "Run ", el("code", {}, run.slice(0, 8)));
	const status = el("div", {class: "row"});
	// What went wrong by itself, and what went wrong when it was asked for: the next look does not wipe that away.
	const looked = el("div", {}), asked = el("div", {});
	const asks = el("section", {class: "cards", "aria-label": "Questions", hidden: true});
	const section = (label, more = "") => el("section", {class: "panel " + more, "aria-labelledby": label, hidden: true});
	const places = {
		outcome: el("section", {class: "panel", "aria-label": "State", hidden: true}), checks: section("checks-title"), changes: section("changes-title"),
		task: section("task-title"), facts: section("facts-title"), left: section("left-title"), decided: section("decided-title"),
		grants: section("grants-title"),
	};
	const cancel = twice("Cancel run", "Tap again to cancel the run", async () => {
		try {
			await call("POST", runPath(run, "/cancel"));
			trouble(asked, null);
			say("Cancel was asked for.");
			wake();
		} catch (e) {
			trouble(asked, e);
		}
	}, {class: "danger"});
	let wake = () => {};
	let known = null, listed = false, wanted = request ?? null, timer = 0;
	const deck = new Deck(asks, {oneRun: true, changed: () => { wake(); nudge(); }});
	const timeline = new Timeline();
	const revoke = async requestId => {
		try {
			await call("DELETE", runPath(run, `/approvals/${encodeURIComponent(requestId)}/grant`));
			trouble(asked, null);
			say("It is asked again from now on.");
		} catch (e) {
			trouble(asked, e);
		}
		wake();
	};
	const parts = {
		status: new Part(status, r => [pill(r.status, r.phase), !isOver(r.status) && cancel]),
		outcome: new Part(places.outcome, outcome), checks: new Part(places.checks, checks), changes: new Part(places.changes, changes),
		task: new Part(places.task, task), facts: new Part(places.facts, facts), left: new Part(places.left, artifacts),
		decided: new Part(places.decided, list => decisions(list, DECISION)),
		grants: new Part(places.grants, list => grants(list, revoke, twice)),
	};

	function show(r) {
		const over = isOver(r.status);
		if (known !== null && (known.status !== r.status || known.phase !== r.phase))
			say(over ? `The run is over: ${STATUS[r.status]}.` : `The run is now ${PHASE[r.phase] ?? STATUS[r.status]}.`);
		known = r;
		deck.show((over ? [] : r.pendingApprovals).map(q => ({...q, runId: run})));
		if (wanted !== null && deck.focus(wanted))
			wanted = null;
		parts.status.show({status: r.status, phase: r.phase});
		parts.outcome.show({status: r.status, phase: r.phase, terminalReason: r.terminalReason, error: r.error, summary: r.summary, cancelRequested: r.cancelRequested});
		parts.checks.show(r.verification);
		parts.changes.show({run, over, files: r.changedFiles, patch: r.artifactKeys.includes("patch")});
		parts.task.show({request: r.request});
		parts.facts.show({runId: run, agent: r.agent, model: r.model, provider: r.provider, limits: r.limits, usage: r.usage, request: r.request,
			createdAt: r.createdAt, startedAt: r.startedAt, finishedAt: r.finishedAt});
		parts.decided.show(r.approvalDecisions);
		parts.grants.show(r.approvalGrants);
		if (over && !listed) {
			listed = true;
			call("GET", runPath(run, "/artifacts")).then(a => parts.left.show({run, list: a.body.artifacts}), e => {
				listed = false;
				trouble(looked, e, wake);
			});
		}
	}

	async function load() {
		clearTimeout(timer);
		let wait = 3000;
		try {
			const r = await snapshot.get(signal);
			if (r !== null)
				show(r);
			trouble(looked, null);
		} catch (e) {
			if (signal.aborted || e.status === 401)
				return;
			if (e.status === 404)
				return trouble(looked, {message: "There is no such run, or it was removed.", code: e.code, requestId: e.requestId});
			trouble(looked, e, wake);
			wait = 6000;
		}
		if (!signal.aborted && !(known !== null && isOver(known.status) && listed))
			timer = setTimeout(load, document.hidden ? 10000 : wait);
	}
	wake = () => {
		clearTimeout(timer);
		timer = setTimeout(load, 60);
	};
	signal.addEventListener("abort", () => clearTimeout(timer));

	fill(main, el("div", {class: "head"}, el("p", {class: "crumb"}, el("a", {href: "#/"}, "Runs")), title, status), looked, asked,
		el("div", {class: "columns"},
			el("div", {}, asks, places.outcome, places.grants, places.checks, places.changes, timeline.element),
			el("div", {}, places.task, places.left, places.facts, places.decided)));
	title.focus({preventScroll: true});
	load();
	follow(run, {signal, state: s => timeline.says(s), events: list => {
		timeline.push(list);
		// What changes the snapshot.
		if (list.some(e => /^(run|approval|check)\./.test(e.event_type)))
			wake();
	}});
}
