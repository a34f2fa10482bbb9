// The service worker: kept where it belongs, and what it makes of pushes, which the browser's own tools deliver here.
import { Agent, Person, base, check, comes, device, until } from "./lib.mjs";
import { card, go, shown } from "./view.mjs";

export default async (chrome) => {
	const p = await Person.come(chrome, { token: await device("notices " + process.pid) });
	await p.context.grantPermissions(["notifications"], { origin: base });
	const tools = await p.context.newCDPSession(p.page), workers = [];
	tools.on("ServiceWorker.workerRegistrationUpdated", (e) => workers.push(...e.registrations));
	await tools.send("ServiceWorker.enable");
	await go(p);
	await p.page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
	await until(() => workers.length > 0);
	check("one service worker, for the page's own folder", new Set(workers.map((w) => w.registrationId)).size === 1 && workers[0].scopeURL === base + "/", workers);
	const manifest = await tools.send("Page.getAppManifest"), problems = await tools.send("Page.getInstallabilityErrors");
	check("the manifest has no fault", manifest.errors.length === 0 && manifest.url === base + "/manifest.webmanifest", manifest.errors);
	// A context of a test is a private one; all else must be right.
	const faults = problems.installabilityErrors.map((e) => e.errorId).filter((id) => id !== "in-incognito");
	check("the page can be installed", faults.length === 0, problems);
	check("nothing of the API is kept", await p.page.evaluate(async () => {
		const all = [];
		for (const name of await caches.keys()) for (const r of await (await caches.open(name)).keys()) all.push(new URL(r.url).pathname);
		return all.length > 5 && all.every((x) => !x.includes("/v1/"));
	}));

	const push = (data) => tools.send("ServiceWorker.deliverPushMessage", { origin: base, registrationId: workers[0].registrationId, data: typeof data === "string" ? data : JSON.stringify(data) });
	const notices = () => p.page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((n) => ({ title: n.title, body: n.body, tag: n.tag, data: n.data })));
	const EVIL = "<b>Allow everything</b> rm -rf ~";
	const id = "5c7b161e-bfa0-4aaf-abe4-115b6e82d746";
	await push({ kind: "card", runId: id, requestId: "q1", tag: "t1", count: 1, title: EVIL, body: EVIL, preview: EVIL });
	await comes("a question makes a notice", async () => (await notices()).length === 1, notices);
	let n = await notices();
	check("with its tag, and where it leads", n[0].tag === "t1" && JSON.stringify(n[0].data).includes(`#/run/${id}/q1`), n);
	check("and not a word that came with it", !JSON.stringify(n).includes("Allow everything") && !JSON.stringify(n).includes("rm -rf"), n);
	await push({ kind: "card", runId: id, requestId: "q2", tag: "t1", count: 3 });
	await comes("the next of the same tag takes its place", async () => { const x = await notices(); return x.length === 1 && /3/.test(x[0].body); }, notices);
	await push({ kind: "card", runId: id, requestId: "q3", tag: "t2", count: 1 });
	await comes("another tag is another notice", async () => (await notices()).length === 2, notices);
	await push({ kind: "clear", runId: id, requestId: "q3", tag: "t2", count: 0 });
	await comes("clear takes its own away", async () => { const x = await notices(); return x.length === 1 && x[0].tag === "t1"; }, notices);
	await push({ kind: "summary", tag: "summary", count: 31 });
	await comes("a summary says how many", async () => (await notices()).some((x) => x.tag === "summary" && /31/.test(x.body)), notices);
	// What is no message of ours still makes a notice (a browser ends subscriptions that show none), and nothing else.
	const before = (await notices()).length;
	for (const odd of ["", "not json", "null", "[]", "7", "\"x\"", JSON.stringify({ kind: EVIL, tag: EVIL, count: EVIL, runId: EVIL, requestId: EVIL }),
		JSON.stringify({ kind: "card", runId: "../../evil", requestId: "<script>", tag: {}, count: 1e99 }), JSON.stringify({ kind: "card", runId: ["x"], tag: null, count: -5 }), "x".repeat(4000)])
		await push(odd);
	await push({ kind: "card", runId: id, requestId: "last", tag: "last", count: 1 });
	await comes("the last one is there", async () => (await notices()).some((x) => x.tag === "last"), notices);
	n = await notices();
	check("odd ones say nothing of their own", n.length > before && n.length <= before + 3 && !/Allow everything|evil|script|xxxx|1e\+|undefined|null|NaN|\[object/.test(JSON.stringify(n.map((x) => [x.title, x.body, x.data]))), n);
	check("and lead nowhere else", n.every((x) => /"#\/(run\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)?)?"/.test(JSON.stringify(x.data))), n);
	await push({ kind: "clear", tag: "none-of-these", count: 0 });
	await push({ kind: "card", runId: id, requestId: "z", tag: "z", count: 1 });
	await comes("a clear of nothing clears nothing", async () => (await notices()).length === n.length + 1, notices);

	// A tap on a notice: the page that is open goes there.
	const a = await Agent.start();
	await a.ask({ request_id: "n1", effect: "read", preview: "ls" });
	await p.page.evaluate((open) => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open } })), `#/run/${a.run}/n1`);
	check("what a notice is for comes into view", await shown(p, "n1") && p.page.url().includes(a.run));
	await p.page.evaluate(() => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open: "javascript:window.pwned=1" } })));
	await p.page.evaluate(() => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open: "https://evil.example/" } })));
	check("and it leads nowhere else", p.page.url().startsWith(base + "/#/run/") && await p.page.evaluate(() => window.pwned === undefined));
	await a.end();
	p.calm("notices");
	await p.leave();
};
