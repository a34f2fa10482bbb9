// The page behind the other two web servers, and below a prefix: it is paired, sees what goes on as it goes on, and decides.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { spawn } from "node:child_process";
import { Agent, Person, api, call, check, code, comes, here, instance, part, until } from "./lib.mjs";
import { card, digest, pair, shown, tap } from "./view.mjs";

// A web server of its own, which ends with this process's pipe to it.
const front = async (server, prefix) => {
	const s = net.createServer().listen(0, "127.0.0.1");
	await new Promise((done) => s.once("listening", done));
	const { port } = s.address();
	await new Promise((done) => s.close(done));
	const dir = fs.mkdtempSync(path.join(process.env.TMPDIR, "front."));
	// Another user's work.
	for (let d = dir; d !== "/tmp"; d = path.dirname(d)) fs.chmodSync(d, 0o755);
	const child = spawn("setpriv", ["--pdeathsig", "TERM", `${here}/../../tools/web-front.sh`, server, dir, String(port), `${instance}/run/pinfold/public/fcgi.sock`, ...prefix ? ["--prefix", prefix] : []], { stdio: "ignore" });
	const url = `http://127.0.0.1:${port}${prefix}`;
	if (!await until(async () => (await call("GET", "/healthz", { at: url })).status === 200)) throw new Error(`${server} did not start`);
	return { url, close: () => new Promise((done) => child.once("exit", done) && child.kill("SIGTERM")) };
};

export default async (chrome) => {
	for (const [server, prefix] of [["nginx", "/deep/api"], ["apache", ""], ["lighttpd", "/deep/api"]]) {
		await part(`fronts: ${server}${prefix}`, async () => {
			const f = await front(server, prefix), label = `${server} ${process.pid}`;
			const p = await Person.come(chrome, { at: f.url });
			p.may = [/\b401\b/];
			await p.page.goto(f.url + "/");
			await p.page.getByRole("heading", { name: "Pair this device" }).waitFor();
			await pair(p, code(), label);
			await p.page.getByRole("heading", { name: "Runs" }).waitFor();
			const kept = (await p.context.cookies()).filter((c) => c.name === "pinfold_device");
			check(`${server}${prefix}: paired, with a cookie for this place`, kept.length === 1 && kept[0].path === (prefix || "/"), kept);
			await p.strict();
			const a = await Agent.start();
			await p.page.goto(`${f.url}/#/run/${a.run}`);
			await p.page.getByText("Live", { exact: true }).waitFor();
			await a.tell({ do: "event", kind: "note", data: { text: "as it comes" } });
			await comes(`${server}${prefix}: what comes is seen while the stream is open`, () => p.page.getByText("as it comes").isVisible());
			await a.ask({ request_id: "f1", effect: "read", preview: "ls" });
			await shown(p, "f1");
			await tap(p, "f1", "Allow once");
			const told = await a.wait("f1");
			check(`${server}${prefix}: decided`, told.decision === "allow_once" && told.digest === digest("read", "ls"), told);
			await p.page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
			check(`${server}${prefix}: one service worker, for this place`, await p.page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map((r) => r.scope).join()) === f.url + "/");
			await a.end();
			await comes(`${server}${prefix}: and its end`, async () => (await p.page.locator(".pill").first().textContent()) === "Completed");
			check(`${server}${prefix}: no wider than the phone`, await p.wide() === 0 && await card(p, "f1").isVisible());
			p.calm(`${server}${prefix}`);
			await p.leave();
			await call("DELETE", "/v1/devices/" + encodeURIComponent(label), { token: api });
			await f.close();
		});
	}
};
