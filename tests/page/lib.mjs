// What the page's tests share: counting, waiting, the API from outside, an agent that does what it is told, a browser.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

export const base = process.env.PINFOLD_URL, instance = process.env.PINFOLD_INSTANCE;
export const here = process.env.PINFOLD_PAGE_TESTS, work = process.env.PINFOLD_PAGE_WORK;
const read = (name) => fs.readFileSync(`${instance}/${name}`, "utf8").trim();
export const operator = (...words) => execFileSync(process.env.PINFOLD_CLI, words, { env: { ...process.env, PINFOLD_ROOT: instance }, encoding: "utf8" }).trim();
export const api = read("api-token");

export let passed = 0, failed = 0;
export const check = (what, ok, detail) => {
	ok ? passed++ : failed++;
	console.log(ok ? "ok" : "FAIL", what, ok ? "" : typeof detail === "string" ? detail.slice(0, 3000) : JSON.stringify(detail)?.slice(0, 3000) ?? "");
	return ok;
};
// Runs it; an exception is a failure of this case alone.
export const part = async (what, f) => {
	try {
		await f();
	} catch (e) {
		check(what, false, e.stack ?? String(e));
	}
};

// As tests/patience.py: what must come has two minutes.
export const PATIENCE = 120000 * Number(process.env.PINFOLD_PATIENCE ?? "1");
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// The first true value of what(), or the last one after the time is up. What throws is not there yet.
export const until = async (what, ms = PATIENCE) => {
	for (const end = Date.now() + ms; ; await sleep(20)) {
		let v, wrong;
		try {
			v = await what();
		} catch (e) {
			wrong = e;
		}
		if (v || Date.now() > end) {
			if (!v && wrong) console.log("  last:", String(wrong).slice(0, 500));
			return v;
		}
	}
};
export const comes = async (name, what, detail) => check(name, await until(what), detail ? await detail() : undefined);

// {status, headers, text, json}; a connection for each request. from: the address that it comes from.
export const call = (method, target, { token, body, headers = {}, from, at = base } = {}) => new Promise((done, failed) => {
	const h = { ...headers };
	if (token) h.authorization = "Bearer " + token;
	if (body !== undefined) h["content-type"] ??= "application/json";
	const rq = http.request(at + target, { method, headers: h, agent: false, localAddress: from, timeout: PATIENCE }, (r) => {
		const parts = [];
		r.on("data", (x) => parts.push(x)).on("error", failed);
		r.on("end", () => {
			const text = Buffer.concat(parts).toString();
			let json = null;
			try {
				json = JSON.parse(text);
			} catch {}
			done({ status: r.statusCode, headers: r.headers, text, json });
		});
	});
	rq.on("error", failed).on("timeout", () => rq.destroy(new Error("timeout"))).end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
});

// A code as the operator gets it printed.
export const code = () => JSON.parse(operator("--json", "device", "pair")).code;
let sources = 0;
// A paired device's bearer token. Each from an address of its own: only so many attempts a minute are one address's.
export const device = async (label) => {
	const r = await call("POST", "/v1/pair", { body: { code: code(), label }, from: `127.0.7.${++sources}` });
	if (r.status !== 201) throw new Error(`pairing ${label}: ${r.text}`);
	return r.json.token;
};

const TERMINAL = ["completed", "failed", "cancelled"];
export const snapshot = async (run) => (await call("GET", "/v1/runs/" + run, { token: api })).json;
export const events = async (run) => (await call("GET", `/v1/runs/${run}/events`, { token: api })).text.trim().split("\n").map((l) => JSON.parse(l));
export const ended = (run) => until(async () => { const v = await snapshot(run); return TERMINAL.includes(v.status) && v; }, 2 * PATIENCE);

// A run whose agent does what it is told: await agent.tell({do: ...}) is its answer.
export class Agent {
	static async start(more = {}) {
		const { files = [], ...rest } = more;
		const r = await call("POST", "/v1/runs", { token: api, body: {
			instruction: "Do what the test says.", agent: "script", allowedPaths: ["notes.py"], checks: [["git", "diff", "--check"]],
			files: [{ path: "agent.py", content: fs.readFileSync(`${here}/agent.py`, "utf8") }, { path: "notes.py", content: "x = 1\n" }, ...files], ...rest } });
		if (r.status !== 202) throw new Error(`POST /v1/runs: ${r.status} ${r.text}`);
		const a = new Agent();
		a.run = r.json.runId;
		a.orders = 0;
		a.root = await until(() => a.#find());
		if (!a.root) throw new Error(`the agent of ${a.run} did not start: ${JSON.stringify(await snapshot(a.run))}`);
		return a;
	}
	// Its root folder, through a process of its own in the box.
	#find() {
		for (const p of fs.readdirSync("/proc").filter((x) => /^\d+$/.test(x))) {
			try {
				if (fs.readFileSync(`/proc/${p}/environ`, "latin1").split("\0").includes("PINFOLD_RUN_ID=" + this.run) && fs.existsSync(`/proc/${p}/root/tmp/do`))
					return `/proc/${p}/root/tmp`;
			} catch {}
		}
		return null;
	}
	order(what) {
		const n = ++this.orders;
		fs.writeFileSync(`${this.root}/do/new`, JSON.stringify(what), { mode: 0o644 });
		fs.renameSync(`${this.root}/do/new`, `${this.root}/do/${n}.json`);
		return n;
	}
	async tell(what) {
		const n = this.order(what), name = `${this.root}/did/${n}.json`;
		if (!await until(() => fs.existsSync(name) || !fs.existsSync(this.root))) throw new Error(`the agent did not do ${JSON.stringify(what)}`);
		return JSON.parse(fs.readFileSync(name, "utf8"));
	}
	// All in one batch, so at most eight. It is not the agent that says that they wait: it is frozen while they do, and does
	// nothing that it is told before they are over.
	async ask(...questions) {
		const n = this.order({ do: "ask", questions: questions.map((q) => ({ action_id: "call-" + q.request_id, policy_reason: "the rule", ...q })) });
		if (!await until(async () => {
			if (fs.existsSync(`${this.root}/did/${n}.json`)) return true;
			const wait = new Set((await snapshot(this.run)).pendingApprovals.map((q) => q.requestId));
			return questions.every((q) => wait.has(q.request_id));
		})) throw new Error(`the agent of ${this.run} did not ask ${JSON.stringify(questions).slice(0, 300)}`);
	}
	wait(id) { return this.tell({ do: "wait", id }); }
	// Takes it away, whatever waits.
	async cancel() {
		await call("POST", `/v1/runs/${this.run}/cancel`, { token: api });
		return ended(this.run);
	}
	async end(code = 0) {
		this.order({ do: "end", code });
		return ended(this.run);
	}
}

// Chromium as root on a machine without a network: no sandbox of its own, nothing asked of its maker.
export const launch = () => chromium.launch({ executablePath: process.env.PINFOLD_CHROMIUM ?? "/usr/bin/chromium", timeout: PATIENCE, args: ["--no-sandbox", "--disable-gpu",
	"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

export const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
export const DESK = { viewport: { width: 1280, height: 800 } };

// A browser of its own (nothing is shared with another one), and what it complained of: violations, errors, requests to
// anybody else.
export class Person {
	static async come(chrome, { label, token, size = PHONE, at = base, ...more } = {}) {
		const p = new Person();
		p.context = await chrome.newContext({ ...size, ...more });
		p.context.setDefaultTimeout(PATIENCE);
		p.touch = size.hasTouch === true;
		p.wrong = []; // what must not be
		p.may = []; // what of it may be all the same, for the moment
		p.requests = [];
		p.posts = []; // answers to questions that it sent
		p.context.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !p.may.some((x) => x.test(m.text() + " " + m.location().url))) p.wrong.push(`${m.type()}: ${m.text()} (${m.location().url})`); });
		p.context.on("weberror", (e) => p.wrong.push("thrown: " + (e.error().stack ?? e.error())));
		p.context.on("dialog", (d) => { p.wrong.push("dialog: " + d.message()); d.dismiss(); });
		p.context.on("request", (r) => { p.requests.push(r); if (r.method() === "POST" && r.url().includes("/approvals/")) p.posts.push(r); if (r.url() !== "about:blank" && !r.url().startsWith(at + "/")) p.wrong.push("asked " + r.url()); });
		await p.context.addInitScript(() => document.addEventListener("securitypolicyviolation", (e) => console.error("policy violated: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample)));
		if (label) token = await device(label);
		p.token = token;
		if (token) await p.context.addCookies([{ name: "pinfold_device", value: token, url: at + "/", httpOnly: true, secure: true, sameSite: "Strict" }]);
		p.page = await p.context.newPage();
		return p;
	}
	// From here on nothing is forgiven any more: what was under way ends with the page, and has been heard of.
	async strict() {
		await this.page.goto("about:blank");
		this.may = [];
	}
	calm(what) { return check(`${what}: no error, no violation, nobody else asked`, this.wrong.length === 0, this.wrong.splice(0)); }
	async shot(name) {
		await this.page.screenshot({ path: path.join(work, name + ".png"), fullPage: true });
	}
	// Wider than the screen?
	async wide() { return this.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth ? document.documentElement.scrollWidth : 0); }
	leave() { return this.context.close(); }
}
