// What of the page needs no browser: node --test tests/page/unit.mjs
import assert from "node:assert/strict";
import {test} from "node:test";
import {runInNewContext} from "node:vm";
import {Still} from "../../web/page/card-guard.js";
import {visible} from "../../web/page/dom.js";
import {codeOf} from "../../web/page/view-pair.js";
import {parse} from "../../web/page/diff.js";
import {Frames, Lines, Once} from "../../web/page/stream.js";
import {ARTIFACT, DECISION, EFFECT, PHASE, REASON, STATUS, eventWords, seconds, size, webAddress} from "../../web/page/words.js";
import {readFileSync} from "node:fs";

const top = new URL("../../", import.meta.url);
const table = name => readFileSync(new URL(name, top), "utf8").split("\n").filter(l => l && !l.startsWith("#")).map(l => l.split("\t"));

test("frames come whole, whatever the pieces", () => {
	const stream = "retry: 2000\n\n: heartbeat\n\nid: 1\nevent: agent.x\ndata: {\"a\":1}\n\nid: 2\r\nevent: y\r\ndata: b\r\ndata:c\r\n\r\nid: 3\ndata: cut";
	for (let n = 1; n <= stream.length; n++) {
		const f = new Frames(), got = [];
		for (let i = 0; i < stream.length; i += n)
			got.push(...f.push(stream.slice(i, i + n)));
		assert.deepEqual(got, [{retry: 2000}, {id: "1", event: "agent.x", data: "{\"a\":1}"}, {id: "2", event: "y", data: "b\nc"}]);
	}
});

test("lines come whole, whatever the pieces", () => {
	const text = "{\"a\":1}\n\n{\"b\":\"\\n\"}\n{\"c\"";
	for (let n = 1; n <= text.length; n++) {
		const l = new Lines(), got = [];
		for (let i = 0; i < text.length; i += n)
			got.push(...l.push(text.slice(i, i + n)));
		assert.deepEqual(got, [{a: 1}, {b: "\n"}]);
	}
});

test("each event once", () => {
	const once = new Once();
	const seen = [1, 2, 2, 1, 3, 2, 3, 4].filter(sequence => once.take({sequence}));
	assert.deepEqual(seen, [1, 2, 3, 4]);
	assert.equal(once.take({}), false);
	assert.equal(once.take(null), false);
});

test("a patch: changed, new, deleted, renamed files", () => {
	const files = parse(`diff --git a/a b.txt b/a b.txt
index 1..2 100644
--- a/a b.txt
+++ b/a b.txt
@@ -1,3 +1,3 @@ head
 same
--- a/looks like a header
+++ b/so does this
 end
@@ -9 +9,2 @@
-x
+y
+z
\\ No newline at end of file
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+<script>alert(1)</script>
diff --git a/old b/old
deleted file mode 100644
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/from b/to
similarity index 100%
rename from from
rename to to
`);
	assert.deepEqual(files.map(f => [f.name, f.kind, f.added, f.removed]), [["a b.txt", "changed", 3, 2], ["new", "added", 1, 0], ["old", "removed", 0, 1], ["to", "renamed", 0, 0]]);
	assert.equal(files[3].from, "from");
	const [hunk, same, minus, plus, end] = files[0].rows;
	assert.deepEqual([hunk.kind, hunk.text], ["hunk", "@@ -1,3 +1,3 @@ head"]);
	assert.deepEqual([same.old, same.now, same.text], [1, 1, "same"]);
	assert.deepEqual([minus.kind, minus.old, minus.text], ["removed", 2, "-- a/looks like a header"]);
	assert.deepEqual([plus.kind, plus.now, plus.text], ["added", 2, "++ b/so does this"]);
	assert.deepEqual([end.old, end.now], [3, 3]);
	assert.equal(files[0].rows.at(-1).kind, "note");
	assert.equal(files[1].rows[1].text, "<script>alert(1)</script>");
});

test("what is no patch is shown all the same", () => {
	for (const text of ["", "hello\nworld", "@@ -1 +1 @@\nodd", "diff --git x", "\\ x", "@@ -1,9 +1,9 @@\n a"]) {
		const lines = text.split("\n").filter(l => l !== "" && !l.startsWith("diff --git"));
		const rows = parse(text).flatMap(f => f.rows);
		assert.equal(rows.length, lines.length, text);
	}
});

test("every reason why a run ends has its words", () => {
	const names = table("spec/reasons.tab").map(r => r[0]);
	assert.deepEqual(Object.keys(REASON).sort(), names.sort());
});

test("every word that an answer may hold has its words", () => {
	const words = (shape, field) => table("spec/responses.tab").find(r => r[0] === "shape" && r[1] === shape && r[2] === field)[3].replace("word:", "").split(",");
	for (const [shape, field, known] of [["Run", "status", STATUS], ["Run", "phase", PHASE], ["Run", "artifactKeys[]", ARTIFACT], ["Run", "approvalDecisions[].decision", DECISION]])
		for (const word of words(shape, field))
			assert.equal(typeof known[word], "string", `${field} ${word}`);
});

test("an event has words, whatever its type and data", () => {
	for (const type of ["run.phase", "model.called", "message.text", "tool.call", "approval.requested", "link", "check.finished", "x", "agent.run.completed", "constructor", "__proto__", "toString"])
		for (const data of [undefined, null, {}, {text: 1}, {text: ["<b>"]}, {url: {}}, {changedFiles: 7}]) {
			const w = eventWords(type, data);
			assert.equal(typeof w.title, "string", type);
			assert.ok(["agent", "pinfold"].includes(w.by), type);
			for (const k of ["note", "body"])
				assert.equal(typeof w[k], "string", `${type} ${k} ${JSON.stringify(data)}`);
		}
	assert.equal(eventWords("agent.run.completed", {}).by, "agent");
	assert.equal(eventWords("limit.other", {}).by, "pinfold");
	assert.equal(eventWords("agent.limit.reached", {}).by, "agent");
	assert.equal(eventWords("run.later", {}).by, "pinfold");
});

test("a table knows its own words alone", () => {
	for (const word of ["constructor", "__proto__", "toString", "hasOwnProperty"])
		assert.equal(EFFECT[word], undefined);
});

test("only https addresses open", () => {
	assert.equal(webAddress("https://example.org/x"), "https://example.org/x");
	for (const bad of ["http://example.org", "javascript:alert(1)", "data:text/html,x", "https://u:p@example.org", "//example.org", "", "x", undefined])
		assert.equal(webAddress(bad), null);
});

test("numbers for people", () => {
	assert.deepEqual([size(999), size(1500), size(2500000)], ["999 bytes", "1.5 kB", "2.5 MB"]);
	assert.deepEqual([seconds(0.123), seconds(59.9), seconds(180), seconds(190), seconds(7300)], ["0.1 s", "59.9 s", "3 min", "3 min 10 s", "2 h 2 min"]);
});

test("a tap counts on what has stood still for half a second", () => {
	const still = new Still();
	assert.deepEqual([["a", 0], ["a", 499], ["a", 500], ["b", 501], ["b", 1000], ["b", 1001], ["a", 1002], ["a", 1500]].map(([place, now]) => still.at(place, now)),
		[false, false, true, false, false, true, false, false]);
});

test("a code as it was typed", () => {
	for (const typed of ["ABCD2345", "abcd-2345", " AB CD 23 45 "])
		assert.equal(codeOf(typed), "ABCD2345");
	for (const typed of ["", "ABCD234", "ABCD23456", "ABCD-234O", "ABCD-2341", "ÄBCD2345"])
		assert.equal(codeOf(typed), null);
});

test("what hides or turns is shown by its number", () => {
	assert.equal(visible("a\u202eb\u200bc\u{e0041}\r\n\td\u0000"), "a‹U+202E›b‹U+200B›c‹U+E0041›‹U+000D›\n\td‹U+0000›");
	assert.equal(visible("Grüße, שלום 👍🏽 ✔️"), "Grüße, שלום 👍🏽 ✔️");
});

// The service worker with a browser made of a list.
async function notices(...messages) {
	const on = {}, shown = [];
	const registration = {scope: "https://host/x/", showNotification: async (title, more) => { shown.push({title, ...more}); },
		getNotifications: async ({tag}) => shown.filter(n => n.tag === tag).map(n => ({close: () => shown.splice(shown.indexOf(n), 1)}))};
	runInNewContext(readFileSync(new URL("web/sw.js", top), "utf8"), {URL, self: {registration, addEventListener: (name, f) => { on[name] = f; }}});
	for (const m of messages) {
		const waits = [];
		on.push({data: {json: () => JSON.parse(m)}, waitUntil: p => waits.push(p)});
		await Promise.all(waits);
	}
	return shown;
}

test("a notice is made of ids and numbers", async () => {
	const card = {kind: "card", runId: "r-1", requestId: "q.1", tag: "-tag_", count: 1};
	const [one] = await notices(JSON.stringify(card));
	assert.deepEqual([one.title, one.body, one.tag, one.data.open], ["An agent asks", "A question waits for your answer.", "-tag_", "#/run/r-1/q.1"]);
	assert.deepEqual(await notices(JSON.stringify(card), JSON.stringify({...card, kind: "clear"})), []);
	assert.equal((await notices(JSON.stringify(card), JSON.stringify({...card, kind: "clear", tag: "other"}))).length, 1);
	const [many] = await notices(JSON.stringify({kind: "summary", tag: "s", count: 7}));
	assert.match(many.body, /^7 more questions wait/);
	assert.equal(many.data.open, "#/");
	for (const bad of ["", "no json", "{}", "null", JSON.stringify({...card, runId: "../x", requestId: "<b>", tag: {}, count: "<b>", title: "EVIL", body: "EVIL"})]) {
		const [n] = await notices(bad);
		assert.deepEqual([n.title, n.body, n.tag, n.data.open], ["An agent asks", "A question waits for your answer.", "pinfold", "#/"], bad);
	}
});
