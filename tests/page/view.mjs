// The page as a person handles it: what is looked for is what is seen or heard (roles, names, words), where it has any.
import { createHash } from "node:crypto";
import { base, check, comes, sleep, until } from "./lib.mjs";

export const digest = (effect, preview) => createHash("sha256").update(`${effect}\0${preview}`).digest("hex");

export const go = async (p, where = "#/") => {
	// Another hash alone is no new page; a person who follows a link gets none either.
	await p.page.goto(`${base}/${where}`);
	await p.page.getByRole("heading", { level: 1 }).waitFor();
};
export const goRun = async (p, run, rest = "") => {
	await go(p, `#/run/${run}${rest}`);
	await p.page.locator(".pill").first().waitFor();
};

export const card = (p, id) => p.page.locator(`article.card[data-request="${id}"]`);
export const shown = (p, id, ms) => until(() => card(p, id).isVisible(), ms);
// The whole digest, as it is on the card, once opened.
export const digestOf = async (p, id) => {
	const d = card(p, id).locator("details.digest");
	if (await d.getAttribute("open") === null) await press(p, d.locator("summary"));
	return (await d.locator("p code").textContent()).trim();
};
export const note = (p, id) => card(p, id).locator(".note").textContent();
export const says = (what, p, id, words) => comes(what, async () => words.test(await note(p, id)), () => note(p, id).catch(String));

export const press = (p, what, more) => p.touch ? what.tap(more) : what.click(more);
// Where it may be gone by the time that it is pressed.
const tryPress = (p, what) => press(p, what, { timeout: 1000 }).catch(() => {});
// As often as it is there.
export const exhaust = (p, what, done) => until(async () => {
	if (await done()) return true;
	await tryPress(p, what.first());
	return done();
});

// A tap that counts: one that comes while the card still moves does not, and says so. Gives what the server answered to it.
export const tap = async (p, id, name) => {
	const b = card(p, id).getByRole("button", { name, exact: true });
	const said = card(p, id).locator(".note"), early = /did not count/;
	for (;;) {
		await b.evaluate((e) => new Promise((done) => {
			let last = "", since = 0;
			const look = () => {
				const r = e.getBoundingClientRect(), at = `${r.left + scrollX} ${r.top + scrollY}`, now = performance.now();
				if (at !== last) [last, since] = [at, now];
				now - since > 600 ? done() : requestAnimationFrame(look);
			};
			look();
		}));
		if (early.test(await said.textContent())) await said.evaluate((e) => e.replaceChildren());
		const before = p.posts.length;
		await press(p, b);
		if (!await until(async () => p.posts.length > before || early.test(await said.textContent()))) throw new Error(`a tap on "${name}" did nothing`);
		if (p.posts.length > before) return (await p.posts[before].response())?.status() ?? 0;
		await sleep(50);
	}
};

// What cannot be undone takes two taps, the second a moment later than a double tap would come. between: after the first.
export const twice = async (p, first, sure, done, between = () => {}) => {
	const b = p.page.getByRole("button", { name: sure });
	await press(p, first);
	await b.first().waitFor();
	await between();
	if (!await exhaust(p, b, done)) throw new Error(`"${sure}" did nothing`);
};

// Puts the printed code in, by hand.
export const pair = async (p, code, label) => {
	await p.page.getByLabel("Pairing code").fill(code);
	await p.page.getByLabel("Name of this device").fill(label);
	await press(p, p.page.getByRole("button", { name: "Pair this device" }));
};

// The numbers of the events in the list.
export const sequences = (p) => p.page.locator("ol.timeline > li").evaluateAll((list) => list.map((e) => Number(e.dataset.sequence)));
export const wholeList = (what, list) => check(what, list.length > 0 && list.every((n, i) => n === list[0] + i), list);
