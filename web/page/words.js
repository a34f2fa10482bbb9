// What the service's words mean to a person. An unknown word is shown as it is: a newer server may know more.

// Without what every object inherits: an agent may name an event or an effect "constructor".
const table = rows => Object.assign(Object.create(null), rows);

export const STATUS = table({queued: "Queued", running: "Running", completed: "Completed", failed: "Failed", cancelled: "Cancelled"});
export const isOver = status => status === "completed" || status === "failed" || status === "cancelled";

export const PHASE = table({
	waiting: "waiting for a free sandbox", staging: "preparing the sandbox", executing: "the agent is at work",
	awaiting_approval: "waiting for your answer", collecting: "collecting what the agent left",
	verifying: "running the checks", cleaning: "taking the sandbox down",
});

// terminalReason: what happened, and what to do about it.
const again = "Start the run again.";
const admin = "Ask the administrator; the log of the service says more.";
export const REASON = table({
	completed: ["The agent ended well and every check passed.", "Read the patch before you apply it."],
	cancelled_by_request: ["It was cancelled.", ""],
	queue_time_exceeded: ["It waited too long for a free sandbox.", "Start it again when less is going on."],
	controller_restarted: ["The service was restarted while it ran.", again],
	not_started: ["It could not be started.", admin],
	source_refused: ["Its source cannot be used.", "The event of the unpacking says which file, and why; make the archive without it."],
	sandbox_capacity: ["No sandbox was free.", again],
	sandbox_refused: ["Its sandbox was refused.", admin],
	sandbox_spawn_failed: ["Its sandbox was not there in time.", again],
	sandbox_setup_failed: ["The workspace could not be prepared.", admin],
	agent_not_started: ["The agent's program could not be started.", "Ask the administrator to look at the agent's profile."],
	agent_failed: ["The agent gave up or failed.", "Its last events and its summary say why; perhaps ask for less at once."],
	wall_time_exceeded: ["It used all its time.", "Give it more time, or a smaller task."],
	memory_exceeded: ["It used more memory than it may have.", "Give it a smaller task, or have the limit raised."],
	cpu_time_exceeded: ["It used more processor time than it may have.", "Give it a smaller task, or have the limit raised."],
	workspace_full: ["Its workspace was full.", "Have the limit raised, or let it write less."],
	workspace_files_exceeded: ["Its workspace held as many files as it may.", "Have the limit raised, or let it write fewer."],
	processes_exceeded: ["It wanted more processes than it may have.", "Have the limit raised."],
	file_size_exceeded: ["It wrote more into one file than it may.", "Have the limit raised."],
	sandbox_result_invalid: ["What it left is not a valid result.", admin],
	sandbox_output_too_large: ["It left more than may be collected.", "Let it write less into its workspace."],
	changed_files_outside_allowed_paths: ["It changed files that it was not allowed to change.", "Allow more paths, or say in the task what it may change."],
	credential_in_result: ["The agent wrote a key that it was given into a file.", "Nothing of that file is kept. Replace the key if others may have seen it."],
	patch_too_large: ["Its changes are larger than may be kept.", "Ask for less at once."],
	judge_failed: ["Its result could not be judged.", admin],
	sandbox_verification_mismatch: ["What a check left does not match the check.", admin],
	check_not_run: ["A check could not be run.", admin],
	check_failed: ["A check did not pass.", "The test log says which and why."],
	no_tests: ["A check that should run tests ran none.", "Look at the test log: the tests may have been lost, or were never found."],
	artifacts_not_stored: ["What it left could not be stored.", admin],
	sandbox_cleanup_failed: ["Its sandbox could not be taken down.", "What it left can be read all the same. " + admin],
	internal_error: ["The service failed.", admin],
});

export const DECISION = table({
	allow_once: "Allowed once", allow_session: "Always allowed in this run", deny: "Denied", cancel: "Told to stop",
	expired: "Expired: nobody answered in time",
});

export const EFFECT = table({
	read: "Read something?", modify: "Change files?", execute: "Run a command?",
	modify_execute: "Change files and run commands?",
});

export const OUTCOME = table({passed: "passed", failed: "failed", no_tests: "ran no tests", timeout: "took too long", killed: "was ended by force"});

export const FLAG = table({
	changed_test_file: "a test file was changed", changed_check_setup: "what the check depends on was changed",
	fewer_tests: "fewer tests than before", nothing_changed: "nothing was changed",
});

export const ARTIFACT = table({
	request: "The request", events: "Events", checkpoint: "Checkpoint", patch: "Patch", test_log: "Test log", result: "Result", transcript: "What the agent printed",
	transcript: "Transcript",
});

export function size(bytes) {
	if (bytes < 1000)
		return `${bytes} bytes`;
	return bytes < 1000000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1000000).toFixed(1)} MB`;
}

export function seconds(s) {
	const two = (a, one, b, other) => b === 0 ? `${a} ${one}` : `${a} ${one} ${b} ${other}`;
	if (s < 60)
		return `${Number(s.toFixed(1))} s`;
	const whole = Math.round(s);
	return whole < 3600 ? two(Math.floor(whole / 60), "min", whole % 60, "s") : two(Math.floor(whole / 3600), "h", Math.round(whole % 3600 / 60), "min");
}

export const number = n => n.toLocaleString();
export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

const text = v => typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v);
// What the service says of texts of a question that it changed or cut (docs/text.md).
const shortened = v => !Array.isArray(v) ? "" : "Text shortened: " + v.map(s => [text(s?.field) || "a member", Number.isSafeInteger(s?.bytes) &&
	`had ${number(s.bytes)} bytes`].filter(Boolean).join(" ")).join(", ");
const list = v => Array.isArray(v) ? v.map(text).join(" ") : text(v);

// An event in a line of ours, and what others wrote beside it: {by, title, note, body, code}. body is foreign text, code
// says that it is no prose. by: "agent" where the agent says it, "pinfold" where the service does.
export function eventWords(type, data = {}) {
	const d = data ?? {};
	const known = table({
		"run.queued": () => ({title: "Queued", note: `agent ${text(d.agent)}, model ${text(d.model)}`}),
		"run.started": () => ({title: "Started"}),
		"run.phase": () => ({title: PHASE[d.phase] ? PHASE[d.phase][0].toUpperCase() + PHASE[d.phase].slice(1) : "Phase " + text(d.phase)}),
		"run.agent_exited": () => ({title: d.started === false ? "The agent could not be started" : `The agent ended with exit code ${text(d.exitCode)}`,
			note: [d.timedOut && "out of time", d.memoryExceeded && "out of memory"].filter(Boolean).join(", ")}),
		"run.source_unpacked": () => ({title: d.accepted ? `The source was unpacked: ${number(d.files)} files` : "The source cannot be used",
			note: d.accepted ? "" : text(d.error), code: d.accepted === false, body: d.accepted === false ? text(d.path) : ""}),
		"run.changes_judged": () => ({title: d.accepted ? "The changes are within what is allowed" : "The changes are not allowed",
			note: list(d.changedFiles) || "no file was changed", code: d.accepted === false, body: d.accepted === false ? text(d.path) : ""}),
		"run.cancel_requested": () => ({title: "Cancel was asked for"}),
		"run.completed": () => ({title: "Completed"}),
		"run.failed": () => ({title: "Failed", note: REASON[d.terminalReason]?.[0] ?? text(d.terminalReason)}),
		"run.cancelled": () => ({title: "Cancelled"}),
		"model.called": () => ({title: `Model asked (${text(d.requestsUsed)} of ${text(d.requestsMax)})`,
			note: d.outcome === "ok" || Number(d.status) === 200 ? `${number((d.promptTokens ?? 0) + (d.completionTokens ?? 0))} tokens, ${seconds((d.durationMs ?? 0) / 1000)}` : `${text(d.outcome)} ${text(d.status)}`}),
		"approval.requested": () => ({by: "agent", title: "Asks: " + (EFFECT[d.effect] ?? text(d.effect)), note: shortened(d.text_shortened),
			body: text(d.preview), code: true}),
		"approval.resolved": () => ({title: DECISION[d.decision] ?? text(d.decision), note: d.device ? "by " + text(d.device) : "as allowed before"}),
		"approval.rejected": () => ({title: "The question was refused", note: text(d.reason)}),
		"approval.expired": () => ({title: "The question expired", note: "nobody answered in time"}),
		"approval.abandoned": () => ({title: "The question is over", note: text(d.reason)}),
		"check.started": () => ({title: "Check started", note: text(d.name)}),
		"check.finished": () => ({title: `Check ${OUTCOME[d.outcome] ?? text(d.outcome)}`, note: text(d.name)}),
		"check.compared": () => ({title: "Tests counted on the upload, too", note: text(d.name)}),
		"events.truncated": () => ({title: "The agent wrote too much", note: "its further events are left out"}),
		"approval.grant_revoked": () => ({title: "Asked again from now on", note: d.device ? "taken back by " + text(d.device) : ""}),
		"limit.reached": () => ({title: "A limit was reached", note: `${text(d.limit)}, at most ${text(d.most)}, in ${d.box === "work" ? "the agent's sandbox" : text(d.box)}`}),
		"message.text": () => ({by: "agent", title: "Says", body: text(d.text)}),
		"tool.call": () => ({by: "agent", title: "Uses a tool", note: text(d.tool), body: text(d.arguments), code: true}),
		"tool.output": () => ({by: "agent", title: d.ok === false ? "The tool failed" : "The tool answers", note: text(d.tool), body: text(d.output), code: true}),
		"agent.started": () => ({by: "agent", title: "The agent is there"}),
		"agent.fields_left_out": () => ({title: "Fields of a model request were left out", note: list(d.fields)}),
		"agent.step": () => ({by: "agent", title: "Step", note: text(d.step ?? d.n ?? "")}),
		"agent.finished": () => ({by: "agent", title: "The agent says that it is done", body: text(d.summary ?? "")}),
		"link": () => ({by: "agent", title: "Link", note: text(d.title ?? d.text ?? ""), link: text(d.url)}),
	})[type];
	if (known !== undefined)
		return {by: "pinfold", note: "", body: "", code: false, ...known()};
	const own = /^(run|model|approval|check|events|limit)\./.test(type);
	const body = Object.keys(d).length === 0 ? "" : JSON.stringify(d, null, 2);
	return {by: own ? "pinfold" : "agent", title: type, note: "", body, code: true};
}

// An address of an event that may be opened: https alone, as docs/text.md says; null where it is none.
export function webAddress(url) {
	try {
		const u = new URL(url);
		return u.protocol === "https:" && u.username === "" && u.password === "" ? u.href : null;
	} catch {
		return null;
	}
}
