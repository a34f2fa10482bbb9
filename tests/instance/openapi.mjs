// Holds the running service against its own description, with tools by others: @seriousme/openapi-schema-validator
// judges the document, openapi-backend finds the operation of each request and judges status, headers and body of
// what came back. Usage: node openapi.mjs (PINFOLD_URL, PINFOLD_INSTANCE, PINFOLD_CLI), beside a node_modules.
import fs from "node:fs";
import http from "node:http";
import { execFileSync } from "node:child_process";
import { Validator } from "@seriousme/openapi-schema-validator";
import backend from "openapi-backend";

const base = process.env.PINFOLD_URL, instance = process.env.PINFOLD_INSTANCE;
const read = (name) => fs.readFileSync(`${instance}/${name}`, "utf8").trim();
const operator = (...words) => execFileSync(process.env.PINFOLD_CLI, words, { env: { ...process.env, PINFOLD_ROOT: instance }, encoding: "utf8" }).trim();
const api = read("api-token"), device = read("device-token"), other = operator("token", "create", "--tenant", "other");
const scrape = operator("token", "create", "--metrics");
let passed = 0, failed = 0;
const check = (what, ok, detail) => {
	ok ? passed++ : failed++;
	console.log(ok ? "ok" : "FAIL", what, ok ? "" : JSON.stringify(detail)?.slice(0, 1500));
};

// Published shapes may grow, but this service may not say anything that its own document does not name.
const close = (v) => {
	if (Array.isArray(v)) v.forEach(close);
	else if (v && typeof v === "object") {
		if (v.type === "object" && v.properties && v.additionalProperties === undefined) v.additionalProperties = false;
		Object.values(v).forEach(close);
	}
	return v;
};

// A connection for each request: one that is kept may be ended just when it is used again, which Node calls a failure.
const fetch = (url, { method = "GET", headers = {}, body } = {}) => new Promise((done, failed) => {
	const rq = http.request(url, { method, headers, agent: false }, (r) => {
		const parts = [], pairs = [];
		for (let i = 0; i < r.rawHeaders.length; i += 2) pairs.push([r.rawHeaders[i], r.rawHeaders[i + 1]]);
		r.on("data", (part) => parts.push(part)).on("error", failed);
		r.on("end", () => done(new Response([204, 304].includes(r.statusCode) ? null : Buffer.concat(parts), { status: r.statusCode, headers: pairs })));
	});
	rq.on("error", failed).end(body);
});

// Push is off unless the configuration names a contact, so the service is started again with one, and at the end without.
const conf = `${instance}/etc/pinfold/pinfold.conf`, before = fs.readFileSync(conf, "utf8");
const sandboxd = () => fs.readdirSync("/proc").find((p) => {
	try { return /^\d+$/.test(p) && fs.readlinkSync(`/proc/${p}/exe`).match(/^(.*)\/pinfold-sandboxd/)?.[1].startsWith(instance); } catch { return false; }
});
const serve = async (settings, status) => {
	const was = sandboxd(), end = Date.now() + 120000;
	fs.writeFileSync(conf, settings);
	process.kill(Number(was), "SIGTERM");
	for (let up = false; !up && Date.now() < end; await new Promise((f) => setTimeout(f, 100)))
		up = sandboxd() && sandboxd() !== was && await fetch(base + "/v1/push/subscriptions", { headers: { authorization: "Bearer " + device } })
			.then(async (r) => r.status === status && (await fetch(base + "/readyz")).status === 200, () => false);
};
process.on("exit", () => fs.writeFileSync(conf, before));
await serve(before + '\npush_contact = "mailto:ops@example.org"\n', 200);

const text = await (await fetch(base + "/openapi.json")).text();
const judged = await new Validator().validate(JSON.parse(text));
check("the document is OpenAPI 3.1, says @seriousme/openapi-schema-validator", judged.valid, judged.errors);
check("the installed copy is the same", read("usr/share/pinfold/openapi.json") === text.trim());
const shape = close(JSON.parse(text));
shape.servers = [{ url: "/" }];
const tool = new backend.OpenAPIBackend({ definition: shape, quick: true, validate: true, ajvOpts: { strict: false, formats: {} } });
await tool.init();
check("openapi-backend finds every operation of it", tool.getOperations().length === Object.values(shape.paths).flatMap(Object.keys).length);
const ndjson = { content: { "application/json": shape.paths["/v1/runs/{runId}/events"].get.responses["200"].content["application/x-ndjson"] } };
const lines = new backend.OpenAPIBackend({ definition: { ...shape, paths: { "/line": { get: { operationId: "line", responses: { 200: ndjson } } } } }, quick: true, ajvOpts: { strict: false } });
await lines.init();

const seen = new Set();
// One request; what comes back must be what the document says of it. want: the status it must have.
const ask = async (method, path, want, { token, body, headers = {}, name } = {}) => {
	const rq = { method, path: path.split("?")[0], query: path.split("?")[1], headers: { ...headers }, body };
	if (token) rq.headers.authorization = "Bearer " + token;
	if (body !== undefined && !("content-type" in rq.headers)) rq.headers["content-type"] = "application/json";
	const raw = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
	const r = await fetch(base + path, { method, headers: rq.headers, body: raw });
	const got = await r.text(), type = r.headers.get("content-type"), title = `${method} ${name ?? path} -> ${want}`;
	const op = tool.router.matchOperation({ ...rq, headers: rq.headers });
	if (op === undefined) { check(title, false, "no such operation in the document"); return null; }
	const said = op.responses[r.status];
	seen.add(`${op.operationId} ${r.status}`);
	if (r.status !== want || said === undefined) { check(title, false, { status: r.status, described: said !== undefined, got }); return null; }
	const h = Object.fromEntries(r.headers), wrong = [];
	const judgedHeaders = tool.validateResponseHeaders(h, op, { statusCode: r.status, setMatchType: "any" });
	if (judgedHeaders.errors) wrong.push(judgedHeaders.errors);
	for (const [k, v] of Object.entries(said.headers ?? {}))
		if (v.required && !(k.toLowerCase() in h)) wrong.push(`no header ${k}`);
	const types = Object.keys(said.content ?? {});
	let value = null;
	if (types.length === 0) {
		if (got !== "") wrong.push("a body that the document does not know");
	} else {
		if (!types.some((t) => type === t || type?.startsWith(t + ";"))) wrong.push(`content type ${type}`);
		if (type?.includes("json")) {
			for (const line of type.includes("x-ndjson") ? got.split("\n").filter(Boolean) : [got]) {
				value = JSON.parse(line);
				// The tool looks at application/json alone; a line is judged as such a body.
				const v = type.includes("x-ndjson") ? lines.validateResponse(value, "line", r.status) : tool.validateResponse(value, op, r.status);
				if (v.errors) { wrong.push(v.errors); break; }
			}
		}
	}
	check(title, wrong.length === 0, { wrong, got });
	return { r, value, got };
};
const good = (more = {}) => ({ instruction: "x", files: [{ path: "agent.py", content: "pass\n" }], allowedPaths: ["agent.py"], checks: [["git", "diff", "--check"]], agent: "script", ...more });
const t = { token: api };

const people = ["/v1/inbox", "/v1/receipts", "/v1/push/subscriptions"];

// Every operation by itself: nobody without a token, where one is needed; a plain GET is answered, but not with a query
// that nobody described.
for (const [path, operations] of Object.entries(shape.paths))
	for (const [method, op] of Object.entries(operations)) {
		const there = path.replace(/{[^}]*}/g, "x"), who = { token: path === "/metrics" ? scrape : people.includes(path) ? device : api };
		if (op.security.length > 0) await ask(method.toUpperCase(), there, 401);
		if (method !== "get" || there !== path) continue;
		await ask("GET", path, 200, op.security.length > 0 ? who : {});
		await ask("GET", path + "?x=1", 400, op.security.length > 0 ? who : {});
	}
for (const path of ["/v1/runs?limit=1", "/v1/runs?status=queued"]) await ask("GET", path, 200, t);
for (const path of ["/v1/runs/none", "/v1/runs/none/events", "/v1/runs/none/artifacts", "/v1/runs/none/artifacts/patch"]) await ask("GET", path, 404, t);
for (const path of ["/v1/runs?limit=0", "/v1/runs?status=x", "/v1/runs?after=x"]) await ask("GET", path, 400, t);
await ask("GET", "/metrics", 403, t);
await ask("POST", "/v1/runs", 403, { token: device, body: good() });
await ask("POST", "/v1/runs", 415, { ...t, body: "x", headers: { "content-type": "text/plain" } });
await ask("POST", "/v1/runs", 400, { ...t, body: "{" });
await ask("POST", "/v1/runs", 400, { ...t, body: good(), headers: { "idempotency-key": "a b" }, name: "a bad key" });
await ask("POST", "/v1/runs", 413, { ...t, body: good({ files: [{ path: "agent.py", content: "x".repeat(64001) }] }), name: "a large file" });
await ask("POST", "/v1/runs", 413, { ...t, body: JSON.stringify(good()) + " ".repeat(768000), name: "a large body" });

// A tar of one empty file, of a name that no other run of this test has.
const tar = (name) => {
	const head = (sum) => (name.padEnd(100, "\0") + "0000644\0" + "0000000\0".repeat(2) + "00000000000\0".repeat(2) + sum + "0").padEnd(512, "\0");
	const sum = [...head(" ".repeat(8))].reduce((n, c) => n + c.charCodeAt(0), 0);
	return head(sum.toString(8).padStart(6, "0") + "\0 ") + "\0".repeat(1024);
};
const archive = { ...t, body: tar(`f${Date.now()}.py`), headers: { "content-type": "application/x-tar" } };
const source = (await ask("POST", "/v1/sources", 201, archive))?.value.sourceId;
await ask("POST", "/v1/sources", 200, archive);
await ask("POST", "/v1/sources", 400, { ...archive, body: "x" });
await ask("POST", "/v1/sources", 415, { ...t, body: "x" });
await ask("GET", `/v1/sources/${source}`, 200, t);
const sourced = (await ask("POST", "/v1/runs", 202, { ...t, body: good({ files: undefined, source }) }))?.value.runId;
await ask("GET", `/v1/runs/${sourced}`, 200, t);
await ask("POST", "/v1/runs", 404, { ...t, body: good({ files: undefined, source: "0".repeat(64) }) });
await ask("POST", "/v1/runs", 400, { ...t, body: good({ source }), name: "both" });
await ask("POST", "/v1/runs", 400, { ...t, body: good({ files: undefined }), name: "neither" });
await ask("DELETE", `/v1/sources/${source}`, 204, t);
await ask("DELETE", `/v1/sources/${source}`, 404, t);
await ask("GET", `/v1/sources/${source}`, 404, t);

// The tool and the service judge bodies alike: what the document's schema refuses is refused, what it takes is taken.
const schema = tool.getOperation("runCreate");
const bodies = { "a good body": good(), "no instruction": good({ instruction: undefined }), "an empty instruction": good({ instruction: "" }),
	"an unknown key": good({ more: 1 }), "no files": good({ files: [] }), "33 files": good({ files: Array.from({ length: 33 }, (_, i) => ({ path: `f${i}.py`, content: "" })) }),
	"a path of 161": good({ files: [{ path: "a".repeat(158) + ".py", content: "" }] }), "an unknown key of a file": good({ files: [{ path: "agent.py", content: "", mode: 1 }] }),
	"content that is none": good({ files: [{ path: "agent.py", content: 1 }] }), "checks that are none": good({ checks: {} }), "five checks": good({ checks: Array(5).fill(["git", "diff", "--check"]) }),
	"limits null": good({ limits: null }), "steps 0": good({ limits: { maxSteps: 0 } }), "steps that are a string": good({ limits: { maxSteps: "1" } }),
	"an approval wait of 86401": good({ limits: { approvalWaitSeconds: 86401 } }), "all limits": good({ limits: { maxSteps: 1, wallTimeSeconds: 9, approvalWaitSeconds: 0 } }),
	"permissions": good({ permissions: { write_file: "ask" } }), "permissions that are a list": good({ permissions: [] }), "an array": [good()] };
for (const [name, body] of Object.entries(bodies)) {
	const rq = { method: "post", path: "/v1/runs", headers: { "content-type": "application/json", authorization: "Bearer " + api }, body: JSON.parse(JSON.stringify(body)) };
	const taken = tool.validateRequest(rq, schema).valid !== false && !tool.validateRequest(rq, schema).errors;
	const a = await ask("POST", "/v1/runs", taken ? 202 : 400, { ...t, body, name: `${name}, which the document ${taken ? "takes" : "refuses"}` });
	if (a?.r.status === 202) await ask("POST", `/v1/runs/${a.value.runId}/cancel`, 202, { ...t, body: "", name: "its cancel" });
}

const key = { "idempotency-key": "openapi-" + Math.random().toString(36).slice(2) };
const made = (await ask("POST", "/v1/runs", 202, { ...t, body: good(), headers: key, name: "a run with a key" })).value.runId;
await ask("POST", "/v1/runs", 202, { ...t, body: good(), headers: key, name: "the same again" });
await ask("POST", "/v1/runs", 409, { ...t, body: good({ instruction: "y" }), headers: key, name: "another body under its key" });
await ask("GET", `/v1/runs/${made}`, 404, { token: other, name: "another tenant's run" });
const sleeper = (await ask("POST", "/v1/runs", 202, { ...t, body: good({ files: [{ path: "agent.py", content: "import time\ntime.sleep(100)\n" }] }), name: "a run that sleeps" })).value.runId;
const until = async (run, what) => {
	for (const end = Date.now() + 120000; Date.now() < end; await new Promise((r) => setTimeout(r, 100))) {
		const v = await (await fetch(`${base}/v1/runs/${run}`, { headers: { authorization: "Bearer " + api } })).json();
		if (what(v)) return v;
	}
	throw new Error(`run ${run} did not get there`);
};
const ended = (v) => ["completed", "failed", "cancelled"].includes(v.status);
await until(sleeper, (v) => v.status === "running");
await ask("GET", `/v1/runs/${sleeper}`, 200, { ...t, name: "a running run" });
await ask("DELETE", `/v1/runs/${sleeper}`, 409, { ...t, name: "a running run" });
await ask("GET", `/v1/runs/${sleeper}/artifacts`, 409, { ...t, name: "artifacts of a running run" });
await ask("GET", `/v1/runs/${sleeper}/artifacts/patch`, 409, { ...t, name: "a patch of a running run" });
await ask("POST", `/v1/runs/${sleeper}/cancel`, 202, { ...t, name: "cancel" });
await until(sleeper, ended);
await ask("POST", `/v1/runs/${sleeper}/cancel`, 200, { ...t, name: "cancel of a cancelled run" });
await until(made, ended);
const snap = await ask("GET", `/v1/runs/${made}`, 200, { ...t, name: "a run that has ended" });
await ask("GET", `/v1/runs/${made}`, 304, { ...t, headers: { "if-none-match": snap.r.headers.get("etag") }, name: "a run that has not changed" });
await ask("GET", `/v1/runs/${made}/events`, 200, { ...t, name: "events" });
await ask("GET", `/v1/runs/${made}/events?after=1`, 200, { ...t, name: "events after the first" });
await ask("GET", `/v1/runs/${made}/events?stream=1&after=9000`, 204, { ...t, name: "the stream of what has ended, from its end on" });
await ask("GET", `/v1/runs/${made}/events?after=x`, 400, { ...t, name: "events after x" });
const list = await ask("GET", `/v1/runs/${made}/artifacts`, 200, { ...t, name: "artifacts" });
for (const a of list.value.artifacts) await ask("GET", `/v1/runs/${made}/artifacts/${a.name}`, 200, { ...t, name: `artifact ${a.name}` });
await ask("GET", `/v1/runs/${made}/artifacts/none`, 404, { ...t, name: "an artifact that is none" });
const asker = `import http.client, json, os, time
run = os.environ["PINFOLD_RUN_ID"]
tok = open("/workspace/.pinfold-event-token").read().strip()
line = json.dumps({"event_type": "approval.requested", "run_id": run, "task_id": run, "sequence": 1, "data": {"request_id": "q1", "effect": "execute", "preview": "make"}}) + "\\n"
c = http.client.HTTPConnection("127.0.0.1", 9797)
c.request("POST", "/internal/v1/runs/%s/events" % run, json.dumps({"lines": [line]}), {"Authorization": "Bearer " + tok, "Content-Type": "application/json"})
c.getresponse().read()
time.sleep(100)
`;
const asking = (await ask("POST", "/v1/runs", 202, { ...t, body: good({ files: [{ path: "agent.py", content: asker }] }), name: "a run that asks" })).value.runId;
await until(asking, (v) => v.pendingApprovals.length === 1 || ended(v));
const question = `/v1/runs/${asking}/approvals/q1`, person = { token: device };
for (const path of people) await ask("GET", path, 403, { ...t, name: `${path} by a program` });
const inbox = await ask("GET", "/v1/inbox?limit=1", 200, { ...person, name: "what waits" });
await ask("GET", "/v1/inbox?limit=1", 304, { ...person, headers: { "if-none-match": inbox.r.headers.get("etag") }, name: "what still waits" });
await ask("GET", `/v1/runs/${asking}`, 200, { ...t, name: "a run that asks" });
await ask("GET", `/v1/runs/${asking}/approvals`, 200, { ...person, name: "its questions" });
await ask("POST", question, 403, { ...t, body: { decision: "deny" }, name: "an answer of no person" });
await ask("POST", question, 400, { ...person, body: { decision: "perhaps" }, name: "another word" });
await ask("POST", question, 409, { ...person, body: { decision: "deny", digest: "0".repeat(64) }, name: "an answer to another question" });
const tapped = await ask("POST", question, 202, { ...person, body: { decision: "allow_session" }, name: "the first tap" });
await ask("POST", question, 200, { ...person, body: { decision: "allow_session", confirm: tapped.value.confirm }, name: "the second tap" });
await ask("POST", question, 409, { ...person, body: { decision: "deny" }, name: "a second answer" });
await ask("POST", question.replace("q1", "q2"), 404, { ...person, body: { decision: "deny" }, name: "another question" });
await ask("GET", `/v1/runs/${asking}`, 200, { ...t, name: "a run with a decision" });
await ask("GET", `/v1/runs/${asking}/approvals`, 200, { ...person, name: "what is allowed for the rest of it" });
await ask("DELETE", `${question}/grant`, 403, { ...t, name: "which no program takes back" });
await ask("DELETE", `${question}/grant`, 204, { ...person, name: "which is taken back" });
await ask("DELETE", `${question}/grant`, 404, { ...person, name: "once" });
await ask("GET", "/v1/receipts?limit=2", 200, { ...person, name: "what the device did" });
await ask("POST", `/v1/runs/${asking}/cancel`, 202, { ...t, name: "its cancel" });
const pairing = () => JSON.parse(operator("--json", "device", "pair")).code;
const label = "openapi-" + Math.random().toString(36).slice(2);
const paired = await ask("POST", "/v1/pair", 201, { body: { code: pairing(), label } });
await ask("POST", "/v1/pair", 409, { body: { code: pairing(), label }, name: "a label that is taken" });
await ask("POST", "/v1/pair", 401, { body: { code: "WRNGCODE", label }, name: "a wrong code" });
await ask("POST", "/v1/pair", 400, { body: { code: "WRNGCODE", label: "a\nb" }, name: "a label that is none" });
await ask("GET", "/v1/devices", 200, { token: paired.value.token, name: "a device's list" });
const point = Buffer.from("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5", "hex");
const browser = { endpoint: "https://fcm.googleapis.com/fcm/send/x", expirationTime: null, keys: { p256dh: point.toString("base64url"), auth: "AAAAAAAAAAAAAAAAAAAAAA" } };
const pushed = { token: paired.value.token };
await ask("POST", "/v1/push/subscriptions", 201, { ...pushed, body: browser });
await ask("GET", "/v1/push/subscriptions", 200, { ...pushed, name: "a device that has push" });
await ask("POST", "/v1/push/subscriptions", 400, { ...pushed, body: { ...browser, endpoint: "https://127.0.0.1/x" }, name: "an address that is none" });
await ask("POST", "/v1/push/subscriptions", 400, { ...pushed, body: { ...browser, endpoint: "https://example.org/x" }, name: "another service" });
await ask("POST", "/v1/push/subscriptions", 403, { ...t, body: browser, name: "an API token's" });
await ask("DELETE", "/v1/push/subscriptions", 204, pushed);
await ask("DELETE", `/v1/devices/${label}`, 204, t);
await ask("DELETE", `/v1/devices/${label}`, 404, { ...t, name: "a device that is gone" });
await ask("GET", "/v1/devices", 401, { token: paired.value.token, name: "its list" });
await ask("GET", "/v1/runs?limit=2", 200, t);
await ask("DELETE", `/v1/runs/${made}`, 403, { token: device, name: "a run by a device" });
await ask("DELETE", `/v1/runs/${made}`, 204, { ...t, name: "a run that has ended" });
await ask("DELETE", `/v1/runs/${made}`, 404, { ...t, name: "a run that is gone" });

// Every operation was asked for something, and has given each answer below 400 that it is said to have.
for (const op of tool.getOperations())
	for (const status of Object.keys(op.responses).filter((s) => Number(s) < 400))
		check(`${op.operationId} has answered ${status}`, seen.has(`${op.operationId} ${status}`));
await serve(before, 503);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
