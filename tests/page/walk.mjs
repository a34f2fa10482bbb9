// What a person with a phone does: pairs, watches, decides, and is told the truth when something goes wrong.
import fs from "node:fs";
import { Agent, DESK, Person, api, base, call, check, code, comes, device, ended, events, instance, operator, part, snapshot, until, work } from "./lib.mjs";
import { card, digest, digestOf, go, goRun, pair, press, says, sequences, shown, tap, twice, wholeList } from "./view.mjs";

const NO = /Failed to load resource.*\b(401|404|409|503)\b/;
let me, label;
const runs = [];
const begin = async (more) => { const a = await Agent.start(more); runs.push(a); return a; };

// The code as it is printed, typed in by hand.
const pairing = async (chrome) => {
	me = await Person.come(chrome);
	me.may = [NO];
	await me.page.goto(base + "/");
	await me.page.getByRole("heading", { name: "Pair this device" }).waitFor();
	check("who is not paired is asked for a code, and sees nothing else", await me.page.locator("nav").isHidden() && await me.page.locator(".card").count() === 0);
	label = `walk ${process.pid}`;
	await pair(me, "ABCDEFGH", label);
	await me.page.getByRole("alert").filter({ hasText: "wrong, used up or too old" }).waitFor();
	check("a wrong code is told so", await me.page.getByLabel("Pairing code").evaluate((e) => e.getAttribute("aria-invalid") === "true" && e === document.activeElement));
	const printed = /: ([A-Z2-9]{4}-[A-Z2-9]{4}) /.exec(operator("device", "pair"))[1];
	await pair(me, printed.toLowerCase(), label);
	await me.page.getByRole("heading", { name: "Runs" }).waitFor();
	const kept = (await me.context.cookies()).filter((c) => c.name === "pinfold_device");
	check("the printed code pairs, with a cookie that the page cannot read", kept.length === 1 && kept[0].httpOnly && kept[0].secure && kept[0].sameSite === "Strict" &&
		await me.page.evaluate(() => document.cookie) === "", kept);
	check("nothing is kept where scripts read", await me.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }).includes("pfd_")) === false);
	await me.strict();
	me.calm("pairing");
	const other = await Person.come(chrome);
	other.may = [NO];
	await other.page.goto(`${base}/#pair=${code()}`);
	const go = other.page.getByRole("button", { name: "Pair this device" });
	await go.waitFor();
	check("a code in the address pairs nobody by itself", await other.page.getByRole("heading", { name: "Pair this device" }).isVisible() && (await other.context.cookies()).length === 0);
	await other.page.getByLabel("Name of this device").fill(label);
	await press(other, go);
	await comes("a name that another device has is told at its field", async () => /Another device has this name/.test(await other.page.locator("#main").textContent()) &&
		await other.page.getByLabel("Name of this device").getAttribute("aria-invalid") === "true", () => other.page.locator("#main").textContent());
	await other.page.getByLabel("Name of this device").fill(label + " by link");
	await press(other, go);
	await other.page.getByRole("heading", { name: "Runs" }).waitFor();
	check("with one tap it does, and does not stay in the address", !other.page.url().includes("pair"), other.page.url());
	other.calm("pairing by a link");
	await other.leave();
};

const waits = async (a, id) => (await snapshot(a.run)).pendingApprovals.some((q) => q.requestId === id);

// From the question to the screen. The time is told, not judged. And two taps for always.
const always = async () => {
	const watched = await begin();
	await goRun(me, watched.run);
	await me.page.getByText("Live", { exact: true }).waitFor();
	const from = Date.now();
	await watched.ask({ request_id: "q1", effect: "execute", preview: "git status", reason: "to see what changed" });
	const asked = Date.now();
	check("the question is seen by who watches the run", await shown(me, "q1"));
	console.log(`  seen ${Date.now() - from} ms after the agent began to ask, ${Date.now() - asked} ms after it was kept`);
	check("with all that is said of it", /git status/.test(await card(me, "q1").textContent()) && /to see what changed/.test(await card(me, "q1").textContent()) &&
		/the rule/.test(await card(me, "q1").textContent()), await card(me, "q1").textContent());
	const seen = await digestOf(me, "q1"), preview = await card(me, "q1").locator("pre").textContent();
	const before = me.posts.length;
	check("the first tap decides nothing", await tap(me, "q1", "Always in this run") === 202);
	check("the agent still waits", await waits(watched, "q1"));
	await me.shot("armed");
	check("the second one decides", await tap(me, "q1", "Tap again: always") === 200 && me.posts.length === before + 2, me.posts.length - before);
	const told = await watched.wait("q1");
	check("the agent goes on with exactly the digest that was shown", told.decision === "allow_session" && told.digest === seen && seen === digest("execute", preview), { told, seen, preview });
	await says("the card says so", me, "q1", /Always allowed in this run, by this device/);
	await watched.ask({ request_id: "q2", effect: "execute", preview: "git status" });
	const again = await watched.wait("q2");
	check("the same is not asked again", again.decision === "allow_session" && again.digest === seen && !await card(me, "q2").isVisible(), again);
	await me.page.getByRole("heading", { name: "Always allowed in this run" }).waitFor();
	// And back again, with two taps.
	await twice(me, me.page.getByRole("button", { name: "Take back" }), "Tap again: ask me from now on", () => me.page.getByRole("heading", { name: "Always allowed in this run" }).isHidden());
	await watched.ask({ request_id: "q3", effect: "execute", preview: "git status" });
	check("what was taken back is asked again", await shown(me, "q3"));
	await tap(me, "q3", "Deny");
	me.calm("two taps");
	await watched.end();
};

const once = async () => {
	const watched = await begin();
	await goRun(me, watched.run);
	// A finger that was on its way when the card came.
	await me.page.evaluate(() => new MutationObserver((_, o) => {
		const b = [...document.querySelectorAll("article.card button")].find((x) => x.textContent === "Allow once");
		if (b) {
			o.disconnect();
			b.click();
		}
	}).observe(document.body, { subtree: true, childList: true }));
	const sent = me.posts.length;
	await watched.ask({ request_id: "o0", effect: "read", preview: "make o0" });
	await says("a tap that was aimed at what was there before does not count", me, "o0", /did not count/);
	check("and nothing was sent", me.posts.length === sent && await waits(watched, "o0"));
	await tap(me, "o0", "Deny");
	for (const [id, effect, name, decision, words] of [["o1", "execute", "Allow once", "allow_once", /Allowed once, by this device/], ["o2", "modify", "Deny", "deny", /Denied, by this device/]]) {
		await watched.ask({ request_id: id, effect, preview: "make " + id });
		await shown(me, id);
		const seen = await digestOf(me, id), before = me.posts.length;
		check(`${name}: one tap`, await tap(me, id, name) === 200 && me.posts.length === before + 1);
		const told = await watched.wait(id);
		check(`${name}: the agent hears it, for what was shown`, told.decision === decision && told.digest === seen && seen === digest(effect, "make " + id), told);
		await says(`${name}: the card says so`, me, id, words);
	}
	me.calm("deciding");
	await watched.end();
};

const elsewhere = async (chrome) => {
	const desk = await Person.come(chrome, { label: label + " desk", size: DESK });
	const watched = await begin();
	await go(desk);
	await goRun(me, watched.run);
	const from = Date.now();
	await watched.ask({ request_id: "e1", effect: "read", preview: "ls e1" });
	check("two devices see it", await shown(me, "e1") && await shown(desk, "e1"));
	console.log(`  seen in the list of runs ${Date.now() - from} ms after the agent began to ask`);
	await tap(desk, "e1", "Allow once");
	await says("who did not decide is told who did", me, "e1", new RegExp(`Allowed once before you, by ${label} desk`));
	check("and has nothing to tap any more", await card(me, "e1").getByRole("button", { name: "Allow once" }).count() === 0);
	// A tap that crosses the other's: this phone does not know yet.
	await watched.ask({ request_id: "e2", effect: "read", preview: "ls e2" });
	await shown(me, "e2");
	await shown(desk, "e2");
	let free;
	const held = new Promise((done) => { free = done; });
	await me.context.route(/\/v1\/(inbox|runs\/)/, async (r) => {
		if (r.request().method() === "GET" && !r.request().url().endsWith("/approvals")) await held;
		await r.continue();
	});
	await tap(desk, "e2", "Deny");
	me.may = [NO];
	check("a tap that comes second is refused", await tap(me, "e2", "Allow once") === 409);
	await says("and is told what was decided", me, "e2", /Denied before you, by/);
	check("the agent got the first", (await watched.wait("e2")).decision === "deny");
	free();
	await me.strict();
	await me.context.unroute(/\/v1\/(inbox|runs\/)/);
	desk.calm("the other device");
	await desk.leave();
	await watched.end();
};

const shortened = async () => {
	const watched = await begin();
	await goRun(me, watched.run);
	await watched.ask({ request_id: "s1", effect: "execute", preview: "echo \u202efr- mr" }, { request_id: "s2", effect: "execute", preview: "x".repeat(15990) + "; rm -rf ~" + "y".repeat(4000) },
		{ request_id: "s3", effect: "execute", preview: Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n") }, { request_id: "s4", effect: "execute", preview: " \n " });
	for (const id of ["s1", "s2", "s4"]) {
		await shown(me, id);
		check(`${id}: a card that does not show all says so and offers no always`, await card(me, id).getByText("Text shortened").isVisible() &&
			await card(me, id).getByRole("button", { name: /always/i }).count() === 0 && await card(me, id).getByRole("button", { name: "Allow once" }).isVisible(), await card(me, id).textContent());
	}
	check("a long one that is whole may be allowed for good", await card(me, "s3").getByRole("button", { name: "Always in this run" }).isVisible());
	const before = me.posts.length;
	// What was not opened was not read.
	await press(me, card(me, "s3").getByRole("button", { name: /Show all/ }));
	check("all of it is there to read", await card(me, "s3").getByText("line 59").isVisible());
	check("and nothing was sent for that", me.posts.length === before);
	const seen = await digestOf(me, "s2");
	if (await card(me, "s2").getByRole("button", { name: /Show all/ }).count()) await press(me, card(me, "s2").getByRole("button", { name: /Show all/ }));
	await tap(me, "s2", "Allow once");
	for (const id of ["s1", "s3", "s4"]) await tap(me, id, "Deny");
	const told = await watched.wait("s2");
	check("allowed once, it is all of it that is allowed", told.decision === "allow_once" && told.digest === seen && seen === digest("execute", "x".repeat(15990) + "; rm -rf ~" + "y".repeat(4000)), told);
	check("no wider than the phone", await me.wide() === 0, await me.wide());
	me.calm("shortened texts");
	await watched.end();
};

// A question that nobody answers. It waits long enough to be seen in time by whoever looks, so it is asked first and looked at last.
let slow;
const soon = async (chrome) => {
	const a = await begin({ limits: { approvalWaitSeconds: 25 } }), p = await Person.come(chrome, { label: label + " late" });
	await goRun(p, a.run);
	await a.ask({ request_id: "l1", effect: "read", preview: "ls" });
	check("it is seen while it waits", await shown(p, "l1") && await card(p, "l1").getByRole("button", { name: "Allow once" }).isVisible());
	slow = { a, p };
};
const late = async () => {
	const { a, p } = slow;
	await says("a question that nobody answered is said to be over", p, "l1", /Expired|Too late/);
	check("and cannot be answered", await card(p, "l1").getByRole("button", { name: /Allow|Deny/ }).count() === 0);
	const told = await a.wait("l1");
	check("the agent heard no refusal", told.status === "expired" && told.decision === undefined, told);
	p.calm("a question that expired");
	await p.leave();
	await a.end();
};

const end = async () => {
	const a = await begin({ instruction: "Add a line." });
	await goRun(me, a.run);
	await a.ask({ request_id: "z1", effect: "read", preview: "ls" });
	await shown(me, "z1");
	await a.tell({ do: "write", path: "notes.py", content: "x = 2\ny = 3\n" });
	await tap(me, "z1", "Allow once");
	await a.wait("z1");
	const v = await a.end();
	check("the run completed", v.status === "completed", v);
	await comes("who watches sees it end", async () => (await me.page.locator(".pill").first().textContent()) === "Completed", () => me.page.locator(".pill").first().textContent());
	await me.page.getByRole("heading", { name: "Changes" }).waitFor();
	await me.page.locator(".diff .line.added").first().waitFor();
	const lines = await me.page.locator(".diff .line.added code, .diff .line.removed code").allTextContents();
	check("the patch is shown", lines.some((l) => l.endsWith("x = 1")) && lines.some((l) => l.endsWith("x = 2")) && lines.some((l) => l.endsWith("y = 3")), lines);
	check("so are the checks", await me.page.getByText("git diff --check").first().isVisible());
	const [download] = await Promise.all([me.page.waitForEvent("download"), press(me, me.page.getByRole("link", { name: "Patch", exact: true }))]);
	check("what it left can be had", /\+y = 3/.test(fs.readFileSync(await download.path(), "utf8")));
	wholeList("each event is there once", await sequences(me));
	me.calm("a run to its end");
};

// Thousands of events: a part of them is in the page, all can be had.
const long = async () => {
	const a = await begin(), list = me.page.locator("ol.timeline > li");
	await a.tell({ do: "many", kind: "note", text: "x".repeat(60), count: 2000 });
	await goRun(me, a.run);
	const last = async () => Number(await list.last().getAttribute("data-sequence"));
	const newest = async () => (await events(a.run)).at(-1).sequence;
	await comes("a long run is shown to its newest event", async () => await last() === await newest());
	check("without all of it in the page", await list.count() <= 300, await list.count());
	wholeList("what is in the page has no gap", await sequences(me));
	const from = (await sequences(me))[0];
	await press(me, me.page.getByRole("button", { name: "Earlier" }));
	await comes("earlier ones can be had", async () => (await sequences(me))[0] < from);
	wholeList("without a gap", await sequences(me));
	await a.tell({ do: "event", kind: "note", data: { text: "and one more" } });
	check("who reads is left where he is", (await sequences(me))[0] < from);
	await press(me, me.page.getByRole("button", { name: "Newest" }));
	await comes("and the newest again", () => me.page.getByText("and one more").isVisible());
	await a.tell({ do: "many", kind: "note", count: 600, at_once: 20, pause: 0.01 });
	await a.end();
	await comes("many that come while one looks on are followed to the end", async () => await last() === await newest());
	wholeList("each of them once", await sequences(me));
	me.calm("a long run");
};

const cancelled = async () => {
	// This agent does not care what it is told.
	const deaf = await begin();
	await goRun(me, deaf.run);
	await deaf.ask({ request_id: "c1", effect: "read", preview: "ls" });
	await shown(me, "c1");
	await tap(me, "c1", "Stop the run");
	const stopped = await ended(deaf.run);
	check("Stop the run: the agent is told to, and whatever it does then, the run is stopped", stopped.status === "cancelled" &&
		stopped.approvalDecisions.some((d) => d.requestId === "c1" && d.decision === "cancel"), stopped);
	const a = await begin();
	await goRun(me, a.run);
	await a.ask({ request_id: "c2", effect: "read", preview: "ls -l" });
	await shown(me, "c2");
	await twice(me, me.page.getByRole("button", { name: "Cancel run" }), "Tap again to cancel the run", async () => (await snapshot(a.run)).cancelRequested,
		async () => check("one tap cancels nothing", (await snapshot(a.run)).cancelRequested === false));
	check("two do", (await ended(a.run)).status === "cancelled");
	await says("what still waited is over", me, "c2", /over|ended|Expired/);
	await comes("the page says so", async () => (await me.page.locator(".pill").first().textContent()) === "Cancelled");
	me.calm("a cancel");
};

const processes = () => fs.readdirSync("/proc").filter((x) => /^\d+$/.test(x)).flatMap((p) => {
	try {
		return [{ pid: Number(p), exe: fs.readlinkSync(`/proc/${p}/exe`), line: fs.readFileSync(`/proc/${p}/cmdline`, "latin1") }];
	} catch {
		return [];
	}
});

const killed = async () => {
	const a = await begin();
	await goRun(me, a.run);
	me.may = [NO, /ERR_|Failed to load resource/];
	let n = 0;
	const kills = [["fcgi", (p) => p.exe.startsWith(instance) && p.exe.endsWith("/pinfold-fcgi")], ["the web server", (p) => p.exe.endsWith("/lighttpd") && p.line.includes(instance + "/web/")]];
	for (const [who, is] of kills) {
		await a.tell({ do: "event", kind: "note", data: { n: ++n } });
		await me.page.getByText(`"n": ${n}`).waitFor();
		const them = processes().filter(is);
		check(`${who} is there`, them.length >= 1, them);
		for (const p of them) process.kill(p.pid, "SIGKILL");
		await until(async () => (await call("GET", "/readyz")).status === 200);
		await a.tell({ do: "event", kind: "note", data: { n: ++n } });
		await comes(`after ${who} was killed what comes is seen`, () => me.page.getByText(`"n": ${n}`).isVisible());
		wholeList(`after ${who} was killed each event is there once`, await sequences(me));
		await a.ask({ request_id: "k" + n, effect: "read", preview: "ls " + n });
		check(`after ${who} was killed a question is seen`, await shown(me, "k" + n));
		await tap(me, "k" + n, "Deny");
	}
	await comes("nothing more is said of it", () => me.page.locator("#offline").isHidden());
	await me.strict();
	await a.end();
	me.calm("kills");
};

const offline = async () => {
	const a = await begin();
	await goRun(me, a.run);
	await me.page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
	me.may = [/ERR_INTERNET_DISCONNECTED|Failed to load resource/];
	await me.context.setOffline(true);
	await comes("offline is said", () => me.page.locator("#offline").isVisible());
	await me.shot("offline");
	await me.page.reload();
	await comes("the page itself is there without a connection, and says that there is none", async () => await me.page.locator("#offline").isVisible() && /does not answer|No connection/.test(await me.page.locator("#offline").textContent()));
	await me.context.setOffline(false);
	await a.tell({ do: "event", kind: "note", data: { back: "again" } });
	await comes("back again by itself", async () => await me.page.locator("#offline").isHidden() && await me.page.getByText('"back": "again"').isVisible(), () => me.page.locator("#main").textContent());
	await me.strict();
	await a.end();
	me.calm("offline");
};

// With keys alone: how many tabs it takes is told.
const keyboard = async (chrome) => {
	const desk = await Person.come(chrome, { label: label + " keys", size: DESK });
	const a = await begin();
	await a.ask({ request_id: "t1", effect: "execute", preview: "make test" });
	await go(desk);
	await shown(desk, "t1");
	const seen = await card(desk, "t1").locator("details.digest p code").textContent(), order = [];
	const now = () => desk.page.evaluate(() => {
		const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e);
		return { name: (e.getAttribute("aria-label") ?? e.textContent).trim().slice(0, 40), card: e.closest("article.card")?.dataset.request ?? null, tag: e.localName,
			ring: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none", there: r.width > 0 && r.height > 0 };
	});
	let at;
	await desk.page.locator("body").focus();
	do {
		await desk.page.keyboard.press("Tab");
		order.push(at = await now());
	} while (!(at.card === "t1" && at.name === "Allow once") && order.length < 60);
	check(`the card's first button is ${order.length} tabs away`, at.card === "t1" && at.name === "Allow once", order.map((o) => o.name));
	check("and it is always seen where one is", order.every((o) => o.ring && o.there), order.filter((o) => !o.ring || !o.there));
	// Every button of the card can be reached, none is a trap.
	const names = [];
	for (let i = 0; i < 4; i++) {
		names.push(at.name);
		await desk.page.keyboard.press("Tab");
		at = await now();
	}
	check("the others follow", names.join() === "Allow once,Deny,Always in this run,Stop the run", names);
	for (let i = 0; i < 4; i++) await desk.page.keyboard.press("Shift+Tab");
	check("and back", (await now()).name === "Allow once");
	// The card has stood still while somebody walked over it; if not, it says so and Enter is pressed again.
	await until(async () => {
		if (desk.posts.length === 0) await desk.page.keyboard.press("Enter");
		return desk.posts.length > 0;
	}, 60000);
	const told = await a.wait("t1");
	check("Enter allows it", told.decision === "allow_once" && told.digest === seen, told);
	await says("the card says so", desk, "t1", /Allowed once/);
	check("and who listens is still there", (await now()).card === "t1", await now());
	await desk.shot("keyboard");
	desk.calm("keys");
	await a.end();
	await desk.leave();
};

const revoked = async () => {
	await go(me);
	me.may = [NO];
	const r = await call("DELETE", "/v1/devices/" + encodeURIComponent(label), { token: api });
	check("the device is revoked", r.status === 204, r.text);
	await comes("a revoked device is at the pairing, and is told why", () => me.page.getByRole("heading", { name: "Pair this device" }).isVisible());
	check("with nothing left of what it saw", await me.page.locator(".card, .run, .pill, .timeline").count() === 0 && /not paired any more/.test(await me.page.locator("#main").textContent()));
	await pair(me, code(), label);
	await me.page.getByRole("heading", { name: "Runs" }).waitFor();
	await me.strict();
	me.calm("revocation");
};

const leaving = async () => {
	me.may = [/\/v1\/push\/subscriptions/]; // nobody set push up here
	await go(me, "#/devices");
	await me.page.getByText("this device", { exact: true }).waitFor();
	check("the devices are listed, with this one", (await me.page.locator("li").filter({ hasText: "this device" }).first().textContent()).includes(label));
	const row = me.page.locator("li").filter({ hasText: label + " by link" }).first();
	await twice(me, row.getByRole("button", { name: "Revoke" }), "Tap again to revoke", async () => await me.page.locator("li").filter({ hasText: label + " by link" }).getByRole("button").count() === 0);
	check("another is revoked with two taps", !(await call("GET", "/v1/devices", { token: api })).json.devices.some((d) => d.label === label + " by link"));
	await me.shot("devices");
	await me.strict();
	me.calm("devices");
};

export default async (chrome) => {
	await pairing(chrome);
	const parts = { soon, always, once, elsewhere, shortened, end, long, cancelled, late, killed, offline, keyboard, revoked, leaving };
	for (const [name, f] of Object.entries(parts)) {
		const from = Date.now();
		await part("walk: " + name, () => f(chrome));
		console.log(`  ${name}: ${((Date.now() - from) / 1000).toFixed(1)} s`);
		if (me.page) await me.page.screenshot({ path: `${work}/walk-${name}.png`, fullPage: true });
	}
	for (const a of runs) call("POST", `/v1/runs/${a.run}/cancel`, { token: api }).catch(() => {});
	await me.leave();
};
