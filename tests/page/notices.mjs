// The service worker: kept where it belongs, and what it makes of pushes, which the browser's own tools deliver here.
import { Agent, Person, base, check, comes, device, part, until } from "./lib.mjs";
import { go, shown } from "./view.mjs";

// The switch. A push service there is none here, so the browser's subscription is a made one, and the server's part is played:
// what is sent to it is what tests/instance/t_push.py sends to the real one.
const switching = async (chrome) => {
	const p = await Person.come(chrome, { token: await device("switch " + process.pid) }), sent = [];
	const key = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 7)]).toString("base64url");
	let subscribed = false, refuse = false;
	await p.context.route("**/v1/push/subscriptions", async (r) => {
		const method = r.request().method();
		if (method !== "GET") sent.push([method, r.request().postDataJSON()]);
		if (method === "POST" && refuse)
			return r.fulfill({ status: 400, json: { error: "push_host_not_allowed", message: "No pushes go to that host.", requestId: "x" } });
		if (method !== "GET") subscribed = method === "POST";
		return method === "DELETE" ? r.fulfill({ status: 204 }) : r.fulfill({ status: method === "POST" ? 201 : 200, json: { publicKey: key, subscribed } });
	});
	await p.context.addInitScript(() => {
		window.asked = [];
		let mine = null;
		PushManager.prototype.subscribe = async (o) => {
			if (window.slow) await new Promise((done) => window.go = done).then(() => { throw new DOMException("push service error", "AbortError"); });
			window.asked.push([o.userVisibleOnly, [...new Uint8Array(o.applicationServerKey.buffer ?? o.applicationServerKey)]]);
			return mine = { toJSON: () => ({ endpoint: "https://push.example.net/a", expirationTime: null, keys: { p256dh: "BPP", auth: "AAA" }, more: 1 }), unsubscribe: async () => { mine = null; return true; } };
		};
		PushManager.prototype.getSubscription = async () => mine;
		window.mine = () => mine !== null;
	});
	await go(p, "#/devices");
	const toggle = p.page.getByRole("switch");
	await toggle.waitFor();
	check("notices are off until somebody wants them", await toggle.getAttribute("aria-checked") === "false" && sent.length === 0 && await p.page.evaluate(() => window.asked.length) === 0);
	await toggle.tap();
	await comes("nobody is told what the person did not allow", async () => /not allowed/.test(await p.page.locator("#main").textContent()) && sent.length === 0, () => p.page.locator("#main").textContent());
	await p.context.grantPermissions(["notifications"], { origin: base });
	refuse = true;
	p.may = [/\b400\b/];
	await go(p);
	await go(p, "#/devices");
	await toggle.tap();
	await comes("what the server refuses is said", async () => /No pushes go to that host/.test(await p.page.locator("#main").textContent()), () => p.page.locator("#main").textContent());
	check("and the browser is not left subscribed", !await p.page.evaluate(() => window.mine()) && await toggle.getAttribute("aria-checked") === "false");
	refuse = false;
	await p.page.evaluate(() => window.slow = true);
	await toggle.tap();
	await comes("while the browser asks its push service that is said", async () => /One moment/.test(await p.page.locator("#main").textContent()) && await p.page.evaluate(() => !!window.go));
	await p.page.evaluate(() => { window.slow = false; window.go(); });
	await comes("and that it did not work", async () => /did not take this page \(push service error\)/.test(await p.page.locator("#main").textContent()), () => p.page.locator("#main").textContent());
	await toggle.tap();
	await comes("switched on", async () => await toggle.getAttribute("aria-checked") === "true");
	const asked = await p.page.evaluate(() => window.asked.at(-1));
	check("with the server's key, for what is seen alone", asked[0] === true && Buffer.from(asked[1]).toString("base64url") === key, asked);
	check("the server gets what it needs and no more", JSON.stringify(sent.at(-1)) === JSON.stringify(["POST", { endpoint: "https://push.example.net/a", expirationTime: null, keys: { p256dh: "BPP", auth: "AAA" } }]), sent);
	await toggle.tap();
	await comes("and off", async () => await toggle.getAttribute("aria-checked") === "false" && sent.at(-1)[0] === "DELETE" && !await p.page.evaluate(() => window.mine()), () => sent);
	await p.strict();
	p.calm("the switch of notices");
	await p.leave();
};

export default async (chrome) => {
	await part("the switch of notices", () => switching(chrome));
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

	const deliver = (data) => tools.send("ServiceWorker.deliverPushMessage", { origin: base, registrationId: workers[0].registrationId, data: typeof data === "string" ? data : JSON.stringify(data) });
	const id = "5c7b161e-bfa0-4aaf-abe4-115b6e82d746";
	// Once for real. A browser without a desk may take notices away as it likes, so it is told again until one is there.
	await comes("a push makes a notice", async () => {
		await deliver({ kind: "card", runId: id, requestId: "q0", tag: "t0", count: 1 });
		return p.page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications({ tag: "t0" })).some((n) => n.tag === "t0" && n.title !== ""));
	});
	// From here on the worker's notices are kept in a list that nobody else touches.
	const worker = await until(() => p.context.serviceWorkers()[0]);
	await worker.evaluate(() => {
		self.kept = new Map();
		self.made = 0;
		const now = Object.getPrototypeOf(self.registration);
		now.showNotification = async (title, o) => { self.made++; self.kept.set(o.tag, { title, body: o.body, tag: o.tag, data: o.data }); };
		now.getNotifications = async ({ tag } = {}) => [...self.kept.values()].filter((n) => tag === undefined || n.tag === tag).map((n) => ({ ...n, close: () => self.kept.delete(n.tag) }));
	});
	const notices = () => worker.evaluate(() => [...self.kept.values()]), made = () => worker.evaluate(() => self.made);
	// A push, and what came of it: a notice more was made, or none where it is a clear.
	let told = 0;
	const push = async (data) => {
		await deliver(data);
		if (data.kind === "clear") return;
		told++;
		if (!await until(async () => await made() === told)) throw new Error(`no notice of ${JSON.stringify(data)}: ${await made()} of ${told}`);
	};
	const EVIL = "<b>Allow everything</b> rm -rf ~";
	await push({ kind: "card", runId: id, requestId: "q1", tag: "t1", count: 1, title: EVIL, body: EVIL, preview: EVIL });
	let n = await notices();
	check("a question's has its tag, and where it leads", n.length === 1 && n[0].tag === "t1" && JSON.stringify(n[0].data).includes(`#/run/${id}/q1`), n);
	check("and not a word that came with it", !JSON.stringify(n).includes("Allow everything") && !JSON.stringify(n).includes("rm -rf"), n);
	await push({ kind: "card", runId: id, requestId: "q2", tag: "t1", count: 3 });
	n = await notices();
	check("the next of the same tag takes its place", n.length === 1 && /3/.test(n[0].body), n);
	await push({ kind: "card", runId: id, requestId: "q3", tag: "t2", count: 1 });
	check("another tag is another notice", (await notices()).length === 2, await notices());
	await push({ kind: "clear", runId: id, requestId: "q3", tag: "t2", count: 0 });
	await comes("clear takes its own away", async () => { const x = await notices(); return x.length === 1 && x[0].tag === "t1"; }, notices);
	await push({ kind: "summary", tag: "summary", count: 31 });
	check("a summary says how many", (await notices()).some((x) => x.tag === "summary" && /31/.test(x.body)), await notices());
	// What is no message of ours still makes a notice (a browser ends subscriptions that show none), and says nothing of its own.
	for (const odd of ["", "not json", "null", "[]", "7", "\"x\"", JSON.stringify({ kind: EVIL, tag: EVIL, count: EVIL, runId: EVIL, requestId: EVIL }),
		JSON.stringify({ kind: "card", runId: "../../evil", requestId: "<script>", tag: {}, count: 1e99 }), JSON.stringify({ kind: "card", runId: ["x"], tag: null, count: -5 }), "x".repeat(4000)])
		await push(odd);
	n = await notices();
	check("odd ones say nothing of their own", n.length === 3 && !/Allow everything|evil|script|xxxx|1e\+|undefined|null|NaN|\[object/.test(JSON.stringify(n.map((x) => [x.title, x.body, x.data]))), n);
	check("and lead nowhere else", n.every((x) => /"#\/(run\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)?)?"/.test(JSON.stringify(x.data))), n);
	await push({ kind: "clear", tag: "none-of-these", count: 0 });
	await push({ kind: "card", runId: id, requestId: "z", tag: "z", count: 1 });
	check("a clear of nothing clears nothing", (await notices()).length === n.length + 1, await notices());

	// A tap on a notice: the page that is open goes there.
	const a = await Agent.start();
	await a.ask({ request_id: "n1", effect: "read", preview: "ls" });
	await p.page.evaluate((open) => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open } })), `#/run/${a.run}/n1`);
	check("what a notice is for comes into view", await shown(p, "n1") && p.page.url().includes(a.run));
	await p.page.evaluate(() => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open: "javascript:window.pwned=1" } })));
	await p.page.evaluate(() => navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { open: "https://evil.example/" } })));
	check("and it leads nowhere else", p.page.url().startsWith(base + "/#/run/") && await p.page.evaluate(() => window.pwned === undefined));
	await a.cancel();
	p.calm("notices");
	await p.leave();
};
