// Runs the parts that are named, one after the other, in one Chromium; each is a module whose default export takes it.
import { failed, launch, part, passed } from "./lib.mjs";

const chrome = await launch();
for (const name of process.argv.slice(2)) {
	const from = Date.now();
	await part(name, async () => (await import(`./${name}.mjs`)).default(chrome));
	console.log(`part ${name} took ${((Date.now() - from) / 1000).toFixed(1)} s`);
}
await chrome.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
