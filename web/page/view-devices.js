// Devices of the tenant, notices on this one, and what the devices decided.
import {call} from "./api.js";
import {button, el, fill, foreign, say, time, twice} from "./dom.js";
import * as push from "./push.js";
import {errorBox} from "./sections.js";
import {DECISION} from "./words.js";

const RECEIPT = {__proto__: null, ...DECISION, requested: "Run cancelled", revoked: "Taken back: always allowed"};

// A list in pages: build(body) gives the rows of one.
function pages(path, build, empty) {
	const list = el("ul", {class: "plain rows"}), trouble = el("div", {});
	const more = button("Show more", () => load(next), {class: "more", hidden: true});
	let next = null;
	async function load(after) {
		more.disabled = true;
		try {
			const {body} = await call("GET", after ? `${path}?after=${encodeURIComponent(after)}` : path);
			const rows = build(body);
			if (!after)
				list.replaceChildren();
			list.append(...rows);
			if (list.children.length === 0)
				list.append(el("li", {class: "empty"}, empty));
			next = body.next ?? null;
			more.hidden = next === null;
			fill(trouble);
		} catch (e) {
			if (e.status !== 401)
				fill(trouble, errorBox(e, () => load(after)));
		}
		more.disabled = false;
	}
	load(null);
	return {nodes: [trouble, list, more], again: () => load(null), wrong: e => fill(trouble, errorBox(e))};
}

function notices() {
	const words = el("p", {}, "…"), place = el("div", {});
	async function show() {
		const why = push.obstacle();
		if (why !== null)
			return fill(words, why);
		try {
			const {on, key} = await push.state();
			fill(words, on ? "On: this device is told when an agent asks, also while this page is closed." :
				"Off. When on, this device is told when an agent asks, also while this page is closed. What an agent wrote is never in a notice.");
			const toggle = el("button", {type: "button", role: "switch", class: "switch", "aria-checked": String(on), "aria-labelledby": "notices-title",
				onclick: () => act(toggle, () => on ? push.off() : push.on(key))}, on ? "On" : "Off");
			fill(place, toggle);
		} catch (e) {
			fill(words, e.code === "push_not_ready" ? "This server sends no notices. The cards are here without them." : e.message);
			fill(place, button("Try again", show, {class: "quiet under"}));
		}
	}
	async function act(toggle, change) {
		toggle.disabled = true;
		fill(words, "One moment: the browser asks its push service.");
		let failed = null;
		try {
			await change();
		} catch (e) {
			failed = e;
		}
		await show();
		place.querySelector("button")?.focus();
		if (failed !== null)
			place.append(errorBox(failed));
		else
			say("Changed.");
	}
	show();
	return [words, place];
}

export function devicesView(main, _, {left}) {
	const title = el("h1", {tabindex: "-1"}, "Devices");
	const devices = pages("v1/devices", body => body.devices.map(d => el("li", {},
		el("div", {}, el("p", {}, foreign(d.label), d.current && [" ", el("span", {class: "tag"}, "this device")]),
			el("p", {class: "meta"}, "paired ", time(d.createdAt), d.lastSeenAt ? [", last seen ", time(d.lastSeenAt)] : ", not seen yet",
				d.expiresAt ? [", until ", time(d.expiresAt)] : "")),
		twice(d.current ? "Unpair" : "Revoke", d.current ? "Tap again to unpair this device" : "Tap again to revoke", async () => {
			try {
				await call("DELETE", `v1/devices/${encodeURIComponent(d.label)}`);
				say("The device is revoked.");
				if (d.current)
					return left();
				devices.again();
			} catch (e) {
				devices.wrong(e);
			}
		}, {class: "danger"}))), "No device is paired.");
	const receipts = pages("v1/receipts", body => body.receipts.map(r => el("li", {}, el("div", {},
		el("p", {}, RECEIPT[r.outcome] ?? r.outcome, " by ", foreign(r.device)),
		el("p", {class: "meta"}, time(r.time), " · ", el("a", {href: `#/run/${encodeURIComponent(r.runId)}`}, "run ", r.runId.slice(0, 8)),
			r.digest ? [" · digest ", el("code", {}, r.digest.slice(0, 12))] : "")))), "Nothing was decided yet.");
	const section = (id, name, ...children) => el("section", {class: "panel", "aria-labelledby": id}, el("h2", {id}, name), ...children);
	fill(main, el("div", {class: "head"}, title),
		el("div", {class: "columns even"}, el("div", {}, section("devices-title", "Paired", ...devices.nodes), section("notices-title", "Notices on this device", ...notices())),
			el("div", {}, section("receipts-title", "What was decided", ...receipts.nodes))));
	title.focus({preventScroll: true});
}
