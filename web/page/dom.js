// The only place that makes elements. Text goes in as text nodes: there is no way here to put markup in.

// el("p", {class: "x", onclick: f}, "text", child, null): null and false children are left out.
export function el(tag, attributes = {}, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on"))
			e.addEventListener(name.slice(2), value);
		else if (value === true)
			e.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined)
			e.setAttribute(name, value);
	}
	add(e, ...children);
	return e;
}

export function add(parent, ...children) {
	for (const c of children.flat(Infinity))
		if (c !== null && c !== undefined && c !== false)
			parent.append(c instanceof Node ? c : String(c));
	return parent;
}

export function fill(parent, ...children) {
	parent.replaceChildren();
	return add(parent, ...children);
}

// What hides, turns a line around or steers a screen. Agents' text comes without; a caller's instruction and a patch do
// not, and must not look like something else.
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
export const visible = text => String(text).replace(UNSEEN, c => `\u2039U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u203a`);

// What an agent, a caller or a device's owner wrote, in a line of ours: its direction stays its own.
export const foreign = text => el("bdi", {dir: "auto", class: "foreign"}, visible(text));

// The same as a paragraph, and as a block of several lines, exactly as it is.
export const prose = text => el("p", {class: "prose", dir: "auto"}, visible(text));
export const verbatim = (text, more = "") => el("pre", {dir: "auto", class: "verbatim " + more}, visible(text));

export const heard = text => el("span", {class: "only-heard"}, text);

export const button = (text, onclick, more = {}) => el("button", {type: "button", onclick, ...more}, text);

// Said to who listens rather than looks. The same sentence twice is said twice.
export function say(text, urgent = false) {
	const place = document.getElementById(urgent ? "urgent" : "polite");
	place.textContent = "";
	setTimeout(() => { place.textContent = text; }, 50);
}

// A button that acts on its second tap, for what cannot be undone. The second one comes a moment later than a double
// tap would.
export function twice(text, sure, act, more = {}) {
	let armed = 0, timer = 0;
	const disarm = () => {
		armed = 0;
		b.textContent = text;
		b.classList.remove("armed");
	};
	const b = button(text, async () => {
		if (armed === 0) {
			armed = Date.now();
			b.textContent = sure;
			b.classList.add("armed");
			say(sure);
			clearTimeout(timer);
			timer = setTimeout(disarm, 6000);
		} else if (Date.now() - armed >= 500) {
			clearTimeout(timer);
			b.disabled = true;
			try {
				await act();
			} finally {
				disarm();
				b.disabled = false;
			}
		}
	}, more);
	return b;
}

// Keeps a part of the page as it is (focus, what was opened, the finger's place) until what it shows has changed.
export class Part {
	constructor(element, build) {
		this.element = element;
		this.build = build;
		this.shown = undefined;
	}
	show(data) {
		const now = JSON.stringify(data);
		if (now === this.shown)
			return;
		this.shown = now;
		const nodes = data === null || data === undefined ? [] : [this.build(data)].flat().filter(Boolean);
		// Whoever was at a button or link in it stays there: at itself, or at what leads to the same place.
		const was = this.element.contains(document.activeElement) ? document.activeElement : null;
		fill(this.element, ...nodes);
		this.element.hidden = nodes.length === 0;
		if (was !== null)
			(was.isConnected ? was : [...this.element.querySelectorAll("a")].find(a => a.href === was.href))?.focus({preventScroll: true});
	}
}

const clock = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
const day = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"});

export function time(ms, short = false) {
	const d = new Date(Number(ms));
	if (Number.isNaN(d.getTime()))
		return el("time", {}, "?");
	const today = d.toDateString() === new Date().toDateString();
	return el("time", {datetime: d.toISOString(), title: day.format(d)}, short || today ? clock.format(d) : day.format(d));
}
