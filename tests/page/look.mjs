// Every view by axe-core, light and dark, on a phone and on a desk; and a picture of each, for people to look at.
import fs from "node:fs";
import { createRequire } from "node:module";
import { Agent, DESK, PHONE, Person, base, check, device, part } from "./lib.mjs";
import { go, goRun, shown } from "./view.mjs";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// What it says of the page as it is now. Rules of all levels that are about what can be tested; best practices too.
const judge = async (p, name) => {
	await p.page.evaluate(axe);
	const r = await p.page.evaluate(() => axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }, resultTypes: ["violations"] }));
	check(`${name}: axe finds nothing`, r.violations.length === 0, r.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => [n.target.join(" "), n.failureSummary])]));
	const small = await p.page.evaluate(() => [...document.querySelectorAll("button, summary, nav a, input, .run, .downloads a")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 80)));
	check(`${name}: what is tapped is big enough`, small.length === 0, small);
	check(`${name}: no wider than the screen`, await p.wide() === 0, await p.wide());
	await p.shot(name.replaceAll(" ", "-"));
	// As wide as a phone is to who has made its text twice as large.
	const was = p.page.viewportSize();
	await p.page.setViewportSize({ width: 320, height: was.height });
	check(`${name}: nor than 320 pixels`, await p.wide() === 0, await p.wide());
	await p.page.setViewportSize(was);
};

export default async (chrome) => {
	// What there is to see: a run that asks, one that is over, one that failed.
	const asks = await Agent.start({ instruction: "Repair the test in calc.py, and say what was wrong." });
	await asks.tell({ do: "event", kind: "message.text", data: { text: "I look at the test first." } });
	await asks.tell({ do: "event", kind: "tool.call", data: { tool: "read_file", arguments: "{\"path\": \"calc.py\"}" } });
	await asks.tell({ do: "event", kind: "tool.output", data: { tool: "read_file", ok: true, output: Array.from({ length: 40 }, (_, i) => `line ${i}`).join("\n") } });
	await asks.tell({ do: "event", kind: "link", data: { url: "https://example.org/a/rather/long/address/that/needs/room", title: "An address" } });
	await asks.ask({ request_id: "a1", effect: "execute", preview: "python3 -m unittest discover", reason: "to see whether it passes" },
		{ request_id: "a2", effect: "modify", preview: Array.from({ length: 50 }, (_, i) => `+ line ${i}`).join("\n"), reason: "to repair it" }, { request_id: "a3", effect: "read", preview: "a\u202eb" });
	const over = await Agent.start({ instruction: "Add two lines." });
	await over.tell({ do: "write", path: "notes.py", content: "x = 2\ny = 'a rather long line that has to be scrolled to or wrapped, because no phone is as wide as this'\n" });
	await over.end();
	const bad = await Agent.start();
	await bad.tell({ do: "write", path: "other.txt", content: "x" });
	await bad.end(1);
	const views = {
		runs: async (p) => { await go(p); await p.page.locator(".run").first().waitFor(); await shown(p, "a1"); },
		asking: async (p) => { await goRun(p, asks.run); await shown(p, "a1"); await p.page.locator("ol.timeline > li").first().waitFor(); },
		over: async (p) => { await goRun(p, over.run); await p.page.locator(".diff .line").first().waitFor(); await p.page.getByRole("heading", { name: "Downloads" }).waitFor(); },
		failed: async (p) => { await goRun(p, bad.run); await p.page.getByRole("heading", { name: "Downloads" }).waitFor(); },
		devices: async (p) => { await go(p, "#/devices"); await p.page.getByText("this device", { exact: true }).waitFor(); await p.page.getByRole("heading", { name: "Notices on this device" }).waitFor(); },
		missing: async (p) => { await go(p, "#/run/00000000-0000-4000-8000-000000000000"); await p.page.getByRole("alert").filter({ hasText: /\w/ }).first().waitFor(); },
		offline: async (p) => { await go(p); await p.context.setOffline(true); await p.page.locator("#offline").waitFor(); },
	};
	for (const [width, size] of [["phone", PHONE], ["desk", DESK]]) {
		for (const colorScheme of ["light", "dark"]) {
			const at = `${width} ${colorScheme}`;
			await part(`look: ${at}`, async () => {
				const nobody = await Person.come(chrome, { size, colorScheme });
				await nobody.page.goto(base + "/");
				await nobody.page.getByRole("heading", { name: "Pair this device" }).waitFor();
				await judge(nobody, `${at} pairing`);
				await nobody.leave();
				const p = await Person.come(chrome, { size, colorScheme, token: await device(`look ${process.pid} ${at}`) });
				for (const [name, open] of Object.entries(views)) {
					await open(p);
					await judge(p, `${at} ${name}`);
				}
				await p.leave();
			});
		}
	}
	await asks.cancel();
};
