// Text by somebody who wishes the reader ill: in every place of the page where foreign text is shown it is text, does nothing,
// asks for nothing, and leaves the page as wide as it was.
import fs from "node:fs";
import { Agent, Person, api, base, call, check, code, comes, device, events, here, part, until } from "./lib.mjs";
import { card, exhaust, go, goRun } from "./view.mjs";

const rows = (name) => fs.readFileSync(`${here}/../vectors/${name}`, "utf8").split("\n").filter((l) => l && !l.startsWith("#")).map((l) => JSON.parse(l));

// What would show itself: a global, a dialog, a request for something with this word in it.
const DO = "window.pwned=1;fetch('/pwned?'+document.cookie);alert(1)";
const MARKUP = [
	`<script>${DO}</script>`, `<img src=x onerror="${DO}">`, `<img src="/pwned.png">`, `<svg onload="${DO}"><circle r=9></svg>`, `<svg><script>${DO}</script></svg>`,
	`<iframe src="javascript:${DO}"></iframe>`, `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`, `<object data="/pwned"></object><embed src="/pwned">`,
	`<a href="javascript:${DO}">click</a>`, `<link rel=stylesheet href="/pwned.css">`, `<style>*{display:none!important}</style>`, `<base href="https://evil.example/">`,
	`<meta http-equiv=refresh content="0;url=/pwned">`, `<form action="/pwned"><button id=go>Allow once</button></form>`, `<input autofocus onfocus="${DO}">`,
	`<details open ontoggle="${DO}">`, `<video src="/pwned" autoplay onerror="${DO}">`, `<math><mtext></mtext></math><marquee onstart="${DO}">`, `</pre></code></p></div></main><h1>Paired</h1>`,
	`"><script>${DO}</script>`, `' onmouseover='${DO}' x='`, "`${" + DO + "}`", `{{constructor.constructor("${DO}")()}}`, `&lt;script&gt;${DO}&lt;/script&gt;`, `<!--><script>${DO}</script>-->`,
	`<![CDATA[<script>${DO}</script>]]>`, `<template><img src=x onerror="${DO}"></template>`, `<ScRiPt\n>${DO}</sCrIpT>`, `<img src=x onerror=${DO.replaceAll("'", "&#39;")}//`,
	`javascript:${DO}`, `data:text/html,<script>${DO}</script>`, `https://evil.example/pwned`, `//evil.example/pwned`, `[x](javascript:${DO})`, `![x](/pwned.png)`, `<https://evil.example/pwned>`,
];
const SHAPES = [
	"W".repeat(10000), "\u202eevil\u202c", "\u2066\u2067\u2069 abc", "\u05d0\u05d1\u05d2 shalom \u0627\u0644", "a\u0301".repeat(3000), "Z\u0300\u0301\u0302\u0303".repeat(400), "\u001b[2J\u001b]0;pwned\u0007\u001b[31mred\u001b[0m",
	"\u001b]8;;https://evil.example/pwned\u0007link\u001b]8;;\u0007", "\u009b31m", "x\r\nSet-Cookie: a=b\r\n\r\nHTTP/1.1 200 OK", "data: {\"event_type\":\"run.completed\"}\n\nid: 999999\nevent: run.completed\n", "\n".repeat(300), "\t".repeat(2000),
	"\u{1F468}\u200d\u{1F469}\u200d\u{1F467}".repeat(50), "\ufdfd".repeat(200), "\u3164".repeat(100), "\ufeff", "\u00ad".repeat(500) + "soft", "-".repeat(5000), "https://example.org/" + "a".repeat(3000), "_".repeat(9000), "\u200b".repeat(900), "\u2028\u2029",
	"\u{E0041}\u{E0042}", "%3Cscript%3E", "\\u003cscript\\u003e", "__proto__", "constructor", "toString", "null", "undefined", "NaN", "-1", "0", "",
];
const ALL = [...MARKUP, ...SHAPES];
// Names that a look-up in a plain object finds without anybody having put them there.
const KINDS = ["constructor", "message.text", "tool.output", "tool.call", "agent.finished", "agent.step", "note", "to_string", "link", "prototype"];
const FIELD = new Map([["tool.output", "output"], ["tool.call", "arguments"], ["agent.finished", "summary"], ["agent.step", "step"]]);
// A piece, at a whole character.
const head = (s, n) => [...s].slice(0, n).join("");

// What of the page is foreign is text: no element but the page's own kinds, no handler, no address but its own.
const inert = async (p, where) => {
	const found = await p.page.evaluate(() => {
		const bad = [], own = new Set(["a", "article", "bdi", "button", "code", "dd", "details", "div", "dl", "dt", "h1", "h2", "h3", "input", "label", "form", "li", "main", "meter", "ol", "p", "pre",
			"section", "span", "strong", "summary", "time", "ul", "nav", "header", "noscript", "img", "body", "table", "td", "th", "tr", "tbody", "thead", "em"]);
		for (const e of document.body.querySelectorAll("*")) {
			if (!own.has(e.localName) || e.namespaceURI !== "http://www.w3.org/1999/xhtml") bad.push(e.localName);
			if (e.localName === "img" && !e.closest("header")) bad.push("img " + e.src);
			if (e.localName === "form" && !e.querySelector("#code")) bad.push("form");
			for (const a of e.attributes) if (/^on|^style$|^srcdoc$/i.test(a.name)) bad.push(`${e.localName}[${a.name}]`);
			if (e.localName === "a" && !e.getAttribute("href").startsWith("#") && !(/^https:\/\/(?!evil)/.test(e.href) && /noopener/.test(e.rel)) && !e.href.startsWith(location.origin + "/v1/runs/")) bad.push("a " + e.href);
		}
		// The nearest block around foreign text: what is painted beyond it is seen nowhere.
		const loose = [...document.body.querySelectorAll(".foreign, .verbatim, .prose")].map((e) => {
			while (getComputedStyle(e).display === "inline") e = e.parentElement;
			return getComputedStyle(e).overflowY === "visible" && `${e.localName}.${e.className}`;
		}).filter(Boolean);
		return { loose: [...new Set(loose)], bad: bad.slice(0, 10), pwned: window.pwned ?? null, title: document.title, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
			hidden: !(document.querySelector("h1")?.getBoundingClientRect().height > 0), base: document.baseURI };
	});
	const asked = p.requests.filter((r) => /pwned|evil/.test(r.url()) && !r.url().startsWith(base + "/v1/runs/")).map((r) => r.url());
	check(`${where}: nothing came of it`, found.bad.length === 0 && found.pwned === null && !found.hidden && asked.length === 0 && !found.base.includes("evil") && /^(\(\d+\) )?(Runs|Run .{0,8}|Run|Devices) · Pinfold$/.test(found.title), { ...found, asked });
	check(`${where}: it paints on nothing else`, found.loose.length === 0, found.loose);
	check(`${where}: as wide as the phone`, found.wide <= 0, found.wide);
};

// Text as it may look: white space is the page's business, letters are not; what shows nothing is named.
const named = (s) => s.replace(/\u2039U\+([0-9A-F]{4,6})\u203a/g, (_, x) => String.fromCodePoint(parseInt(x, 16)));
const plain = (s) => named(s).replace(/\s+/g, " ").trim();

const timeline = async (p) => {
	const text = rows("text.jsonl").map((r) => r.in).filter((t) => typeof t === "string"), links = rows("links.jsonl").map((r) => r.in).filter((t) => typeof t === "string");
	const queue = [];
	for (const [i, t] of [...ALL, ...text].entries()) queue.push([KINDS[i % 6], { [FIELD.get(KINDS[i % 6]) ?? "text"]: head(t, 10000), tool: head(t, 200), [head(t, 20)]: i }]);
	for (const t of [...MARKUP.slice(0, 8), ...links]) queue.push(["link", { url: t, title: t }]);
	for (const k of KINDS) queue.push([k, { text: "words", output: "words", i: k }], [k, {}], [k, { text: { a: ["<b>", 1, null] }, output: 5, tool: false, ok: "no" }]);
	// Less than the list shows at once, a run each.
	for (let from = 0; from < queue.length; from += 150) {
		const a = await Agent.start({ instruction: ALL[from / 150 % MARKUP.length] });
		await goRun(p, a.run);
		for (const [kind, data] of queue.slice(from, from + 150)) {
			const r = await a.tell({ do: "event", kind, data });
			if (r.http !== 202) throw new Error(`${kind}: ${JSON.stringify(r)} ${JSON.stringify(data).slice(0, 300)}`);
		}
		const kept = await events(a.run), last = kept.at(-1).sequence;
		await until(async () => Number(await p.page.locator("ol.timeline > li").last().getAttribute("data-sequence")) >= last);
		// All that is folded is opened.
		await p.page.locator("details").evaluateAll((list) => list.forEach((d) => { d.open = true; }));
		const got = new Map(await p.page.locator("ol.timeline > li").evaluateAll((list) => list.map((e) => [Number(e.dataset.sequence), e.textContent])));
		const gone = kept.filter((e) => {
			const t = got.get(e.sequence);
			if (t === undefined || /\bundefined\b/.test(t) && !JSON.stringify(e.data).includes("undefined") || /\[object|\[native|function Object/.test(t)) return true;
			const of = { "message.text": "text", "tool.output": "output", "agent.finished": "summary" }[e.event_type], w = of && e.data[of];
			return typeof w === "string" && !plain(t).includes(plain(w));
		});
		check(`events ${from + 1} to ${Math.min(queue.length, from + 150)} are there, word by word`, gone.length === 0, gone.slice(0, 3).map((e) => [e, got.get(e.sequence)?.slice(0, 300)]));
		await inert(p, "events from " + (from + 1));
		if (from === 0) await p.shot("hostile-events");
		await a.end();
	}
};

const questions = async (p) => {
	const all = [...MARKUP, ...SHAPES.filter((s) => s !== "")];
	// At most so many are asked at once.
	for (let from = 0; from < all.length; from += 8) {
		const a = await Agent.start(), some = all.slice(from, from + 8);
		const effects = ["execute", "constructor", "<b>x</b>", "__proto__", "modify", "\u202eread"];
		await goRun(p, a.run);
		await a.ask(...some.map((t, i) => ({ request_id: `h${i}`, effect: effects[(from + i) % effects.length], preview: t, reason: head(t, 400), policy_reason: head(t, 400), action_id: head(t, 50) })));
		const waits = (await call("GET", `/v1/runs/${a.run}/approvals`, { token: p.token })).json.pending;
		check(`questions from ${from + 1}: all wait`, waits.length === some.length, [waits.length, some.length]);
		await until(async () => await p.page.locator("article.card").count() === waits.length);
		await p.page.locator("details").evaluateAll((list) => list.forEach((d) => { d.open = true; }));
		const wrong = [], cards = await p.page.locator("article.card").evaluateAll((list) => list.map((e) => [e.dataset.request, e.textContent, [...e.querySelectorAll("pre")].map((x) => x.textContent)]));
		for (const q of waits) {
			const [, t, pre] = cards.find(([id]) => id === q.requestId);
			// A preview is shown to the letter, or not at all.
			if (q.preview.trim() === "" ? pre.length !== 0 || !/does not say/.test(t) : pre.length !== 1 || named(pre[0]) !== q.preview) wrong.push([q.requestId, "preview"]);
			for (const k of ["reason", "policyReason", "actionId"]) if (!plain(t).includes(plain(q[k]))) wrong.push([q.requestId, k, q[k]]);
			if (/\[object|\[native|undefined/.test(t) && !/\[object|\[native|undefined/.test(JSON.stringify(q))) wrong.push([q.requestId, t.slice(0, 200)]);
			if (!t.includes(q.digest)) wrong.push([q.requestId, "digest"]);
		}
		check(`questions from ${from + 1}: each is shown to the letter`, wrong.length === 0, wrong.slice(0, 5));
		await inert(p, `questions from ${from + 1}`);
		await go(p);
		await until(async () => await p.page.locator("article.card").count() >= waits.length);
		await inert(p, `questions from ${from + 1}, in the list of runs`);
		if (from === 0) await p.shot("hostile-questions");
		await a.cancel();
	}
};

const left = async (p) => {
	// Names of files that may be changed are plain; the longest is long.
	const good = ["w".repeat(157) + ".py", "constructor/__proto__.py", "_.py"];
	const a = await Agent.start({ instruction: MARKUP.join("\n") + "W".repeat(4000), files: good.map((path) => ({ path, content: "old\n" })), allowedPaths: good });
	for (const path of good) await a.tell({ do: "write", path, content: [...MARKUP, ...SHAPES.map((t) => head(t, 700)), "-- a/x", "++ b/x", "@@ -1 +1 @@", "diff --git a/x b/y"].join("\n") + "\n" });
	await a.tell({ do: "write", path: "../response.json", content: JSON.stringify({ status: "completed", summary: MARKUP.join("\n") + "\n" + "W".repeat(9000) }) });
	const v = await a.end();
	await goRun(p, a.run);
	await p.page.getByRole("heading", { name: "Changes" }).waitFor();
	await comes("every changed file is in the patch that is shown", async () => await p.page.locator("details.file").count() === good.length, async () => [v.status, v.terminalReason, v.changedFiles, await p.page.locator("details.file").count()]);
	await p.page.locator("details").evaluateAll((list) => list.forEach((d) => { d.open = true; }));
	const body = await p.page.locator("#main").textContent();
	check("names, patch, task and summary are there as text", good.every((f) => body.includes(f)) && MARKUP.every((m) => plain(body).includes(plain(m).slice(0, 40))));
	await inert(p, "what a run left");
	await p.shot("hostile-left");
	// Other names end the run, and are told.
	for (const path of [`<img src=x onerror="${DO.replaceAll("/", "")}">.py`, "\u202eyp.txt", "W".repeat(200), "\u001b[2J\n.py"]) {
		const b = await Agent.start();
		await b.tell({ do: "write", path, content: "x" });
		const w = await b.end();
		await goRun(p, b.run);
		await p.page.getByText("The changes are not allowed").waitFor();
		check("a name that nobody allowed", w.status === "failed", w);
		await inert(p, "a name that nobody allowed");
	}
	await go(p);
	await p.page.locator(".run").first().waitFor();
	await inert(p, "the list of runs");
};

const labels = async (p) => {
	const made = [];
	for (const [i, t] of [...MARKUP, ...SHAPES].entries()) {
		const r = await call("POST", "/v1/pair", { body: { code: code(), label: t.slice(0, 40) }, from: `127.0.9.${i + 1}` });
		if (r.status === 201) made.push(r.json.label ?? t.slice(0, 40));
	}
	check("some labels that are taken are odd", made.length >= 10, made);
	p.may = [/\/v1\/push\/subscriptions/]; // nobody set push up here
	await go(p, "#/devices");
	await p.page.getByText("this device", { exact: true }).waitFor();
	const more = p.page.getByRole("button", { name: "Show more" });
	await exhaust(p, more, async () => await more.count() === 0);
	await inert(p, "labels");
	await p.shot("hostile-labels");
	for (const label of made) await call("DELETE", "/v1/devices/" + encodeURIComponent(label), { token: api });
};

const addresses = async (p) => {
	for (const where of ["#/run/<img src=x onerror=pwned=1>", "#/run/..%2f..%2fpwned", "#/run/%00", "#/run/%E0%A4%A", "#/<script>pwned=1</script>", "#/run/a/b/c/d", "#pair=<script>", "#/run/javascript:pwned=1"]) {
		await p.page.goto("about:blank");
		p.may = [/404/, /400/];
		await go(p, where);
		await inert(p, "the address " + where);
	}
	await p.page.getByText("There is no such run, or it was removed.").waitFor();
	check("what is not there is said to a person, and nothing is offered that cannot help", await p.page.getByRole("button", { name: "Try again" }).count() === 0);
	await p.strict();
};

export default async (chrome) => {
	const p = await Person.come(chrome, { token: await device("hostile " + process.pid) });
	for (const [name, f] of Object.entries({ timeline, questions, left, labels, addresses })) await part("hostile: " + name, () => f(p));
	p.calm("hostile text");
	await p.leave();
};
