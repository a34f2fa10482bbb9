// Parts of a run that are only shown: how it ended, its checks, its changes, its limits, what it left.
import {address, request, runPath} from "./api.js";
import {button, el, fill, foreign, heard, prose, time, verbatim, visible} from "./dom.js";
import {parse} from "./diff.js";
import {ARTIFACT, FLAG, OUTCOME, PHASE, REASON, STATUS, isOver, number, plural, seconds, size} from "./words.js";

const ROWS = 300;

export const pill = (status, phase) => el("span", {class: `pill ${phase === "awaiting_approval" ? "asks" : status}`},
	phase === "awaiting_approval" ? "Asks you" : STATUS[status] ?? status);

export const errorBox = (e, retry) => el("div", {class: "panel wrong", role: "alert"},
	el("p", {}, e.message ?? String(e)),
	el("p", {class: "meta"}, e.code ? `Code ${e.code}` : "", e.requestId ? `, request ${e.requestId}` : ""),
	retry && button("Try again", retry));

// The same error is shown once, however often it comes: it is said aloud, and its button is not pulled away. null: none.
export function trouble(place, e, retry) {
	const what = e === null ? "" : `${e.code} ${e.message}`;
	if ((place.dataset.what ?? "") === what)
		return;
	place.dataset.what = what;
	fill(place, e !== null && errorBox(e, retry));
}

const panel = (id, title, ...children) => [el("h2", {id}, title), ...children];

export function outcome(run) {
	if (!isOver(run.status)) {
		const words = run.cancelRequested ? "Cancel was asked for; the run ends as soon as its sandbox is down." :
			`Now: ${PHASE[run.phase] ?? run.phase ?? STATUS[run.status]}.`;
		return [el("p", {class: "lead"}, words)];
	}
	const [what, todo] = REASON[run.terminalReason] ?? [run.terminalReason ?? "It has ended.", ""];
	return [
		el("p", {class: "lead"}, what, " ", todo),
		run.error && el("p", {class: "meta"}, "Code ", el("code", {}, run.error)),
		run.summary && el("div", {class: "claim"}, el("h2", {}, "The agent’s own words"), prose(run.summary)),
	];
}

const counts = t => t === undefined ? "" : `${plural(t.run, "test", "tests")}, ${number(t.failed)} failed${t.skipped > 0 ? `, ${number(t.skipped)} skipped` : ""}`;

export function checks(list) {
	if (!list || list.length === 0)
		return null;
	return panel("checks-title", "Checks", el("ul", {class: "plain"}, list.map(c => el("li", {class: `check ${c.ok ? "good" : "bad"}`},
		el("span", {class: "mark", "aria-hidden": "true"}, c.ok ? "✓" : "✗"),
		el("div", {}, el("p", {}, el("code", {dir: "auto"}, visible(c.argv.join(" "))), " ", el("strong", {}, OUTCOME[c.outcome] ?? c.outcome)),
			el("p", {class: "meta"}, [counts(c.tests), seconds(c.durationSeconds), c.ok ? "" : `exit code ${c.exitCode}`].filter(Boolean).join(" · ")),
			c.flags.length > 0 && el("p", {class: "warning"}, "Look twice: ", c.flags.map((f, i) =>
				[i > 0 ? "; " : "", FLAG[f.flag] ?? f.flag, f.path ? [" (", foreign(f.path), ")"] : ""])))))));
}

// What was shown of a patch is text: marked by a sign and a word for who listens, not by colour alone.
function diffRow(r) {
	const sign = {added: "+", removed: "−", hunk: "", same: "", note: ""}[r.kind];
	return el("div", {class: `line ${r.kind}`},
		el("span", {class: "n", "aria-hidden": "true"}, r.old ?? ""), el("span", {class: "n", "aria-hidden": "true"}, r.now ?? ""),
		el("span", {class: "sign", "aria-hidden": "true"}, sign),
		el("code", {dir: "auto"}, r.kind === "added" && heard("added: "), r.kind === "removed" && heard("removed: "), r.text === "" ? "\u00a0" : visible(r.text)));
}

const KIND = {added: "new", removed: "deleted", renamed: "renamed", changed: ""};

function diffFile(f) {
	const rows = el("div", {class: "diff"});
	const more = button("", () => show(), {class: "more"});
	let shown = 0;
	const show = () => {
		rows.append(...f.rows.slice(shown, shown + ROWS).map(diffRow));
		shown += ROWS;
		more.hidden = shown >= f.rows.length;
		more.textContent = `Show ${Math.min(ROWS, f.rows.length - shown)} more lines (of ${number(f.rows.length)})`;
	};
	show();
	return el("details", {class: "file", open: true},
		el("summary", {}, foreign(f.name), " ", f.from !== null && ["from ", foreign(f.from), " "], KIND[f.kind] !== "" && el("span", {class: "tag"}, KIND[f.kind]), " ",
			el("span", {class: "plus"}, `+${f.added}`), " ", el("span", {class: "minus"}, `−${f.removed}`)), rows, more);
}

// Asked for when the run has ended, and only once.
export function changes(data) {
	if (!data.over || (data.files ?? []).length === 0)
		return data.over ? panel("changes-title", "Changes", el("p", {}, "No file was changed.")) : null;
	const place = el("div", {});
	const load = async () => {
		fill(place, el("p", {class: "meta"}, "Loading the patch…"));
		try {
			const text = await (await request("GET", runPath(data.run, "/artifacts/patch"))).text();
			fill(place, parse(text).map(diffFile));
		} catch (e) {
			fill(place, errorBox(e, load));
		}
	};
	if (data.patch)
		load();
	else
		fill(place, el("ul", {}, data.files.map(f => el("li", {}, foreign(f)))));
	return panel("changes-title", "Changes", el("p", {class: "meta"}, plural(data.files.length, "file", "files"), data.patch ? "" : "; there is no patch"), place);
}

export function facts(run) {
	const l = run.limits, u = run.usage;
	const meter = (label, value, max) => [el("dt", {}, label), el("dd", {}, `${number(value)} of ${number(max)}`,
		el("meter", {min: 0, max: Math.max(1, max), value, "aria-hidden": "true"}))];
	return panel("facts-title", "Details", el("dl", {class: "facts"},
		el("dt", {}, "Agent"), el("dd", {}, foreign(run.agent)),
		el("dt", {}, "Model"), el("dd", {}, foreign(run.model), el("span", {class: "meta"}, " at ", foreign(run.provider))),
		meter("Model requests", u.modelRequests, u.maxModelRequests),
		el("dt", {}, "Tokens"), el("dd", {}, `${number(u.promptTokens)} in, ${number(u.completionTokens)} out`),
		el("dt", {}, "Steps"), el("dd", {}, `at most ${number(l.maxSteps)}`),
		el("dt", {}, "Time"), el("dd", {}, `at most ${seconds(l.wallTimeSeconds)}`,
			run.startedAt && run.finishedAt ? `; took ${seconds((run.finishedAt - run.startedAt) / 1000)}` : ""),
		el("dt", {}, "Answers"), el("dd", {}, l.approvalWaitSeconds === 0 ? "nobody is asked" : `a question waits ${seconds(l.approvalWaitSeconds)}`),
		el("dt", {}, "Created"), el("dd", {}, time(run.createdAt)),
		run.finishedAt && [el("dt", {}, "Ended"), el("dd", {}, time(run.finishedAt))],
		el("dt", {}, "May change"), el("dd", {}, run.request.allowedPaths.map((p, i) => [i > 0 ? ", " : "", foreign(p)])),
		el("dt", {}, "Run"), el("dd", {}, el("code", {}, run.runId))));
}

export function task(run) {
	const long = run.request.instruction.length > 600;
	const text = prose(run.request.instruction);
	return panel("task-title", "Task", long ? el("details", {}, el("summary", {}, foreign(run.request.instruction.slice(0, 200)), "…"), text) : text,
		el("p", {class: "meta"}, run.request.source ? "An archive" : plural(run.request.fileCount, "file", "files"), " uploaded"));
}

export function artifacts(data) {
	if (data === null || data.list.length === 0)
		return null;
	return panel("left-title", "Downloads", el("ul", {class: "plain downloads"}, data.list.map(a => el("li", {},
		el("a", {href: address(runPath(data.run, `/artifacts/${encodeURIComponent(a.name)}`)), download: `${data.run}-${a.name}.txt`}, ARTIFACT[a.name] ?? a.name),
		" ", el("span", {class: "meta"}, size(a.size))))));
}

export function decisions(list, words) {
	if (!list || list.length === 0)
		return null;
	return panel("decided-title", "Decided", el("ul", {class: "plain"}, list.map(d => el("li", {},
		el("p", {}, words[d.decision] ?? d.decision, d.device ? [" by ", foreign(d.device)] : ""),
		el("p", {class: "meta"}, time(d.decidedAt), " · ", foreign(d.requestId), " · digest ", el("code", {}, d.digest.slice(0, 12)))))));
}

// What is allowed for the rest of the run; revoke(requestId) takes one back.
export function grants(list, revoke, twice) {
	if (!list || list.length === 0)
		return null;
	return panel("grants-title", "Always allowed in this run", el("ul", {class: "plain"}, list.map(g => el("li", {},
		verbatim(g.preview, "code"), el("p", {class: "meta"}, foreign(g.effect), " · ", time(g.decidedAt), g.device ? [" · ", foreign(g.device)] : ""),
		twice("Take back", "Tap again: ask me from now on", () => revoke(g.requestId), {class: "quiet"})))));
}
