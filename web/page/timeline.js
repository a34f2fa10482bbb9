// The events of a run as a list. All are kept as data (a run's are bounded by the server); a window of them is in the page.
import {button, el, fill, foreign, prose, time, verbatim} from "./dom.js";
import {eventWords, number, webAddress} from "./words.js";

const WINDOW = 200, STEP = 150;
// Of a text in the list, so much at once.
const GLANCE = 400;

function bodyOf(w) {
	if (w.link) {
		const href = webAddress(w.link);
		return href === null ? el("p", {}, foreign(w.link))
			: el("p", {}, el("a", {href, target: "_blank", rel: "noopener noreferrer", dir: "ltr"}, href));
	}
	if (!w.body)
		return null;
	const show = text => w.code ? verbatim(text, "code") : prose(text);
	if (w.body.length <= GLANCE && w.body.split("\n").length <= 8)
		return show(w.body);
	const first = w.body.split("\n", 1)[0].slice(0, 100);
	return el("details", {}, el("summary", {}, foreign(first), "… ", el("span", {class: "meta"}, `(${number(w.body.length)} characters)`)), show(w.body));
}

function row(event) {
	const w = eventWords(event.event_type, event.data);
	return el("li", {class: `event by-${w.by}`, "data-sequence": event.sequence},
		time(event.created_at, true),
		el("div", {}, el("p", {class: "event-title"}, w.by === "agent" && el("span", {class: "tag"}, "agent"), w.by === "agent" && " ",
			foreign(w.title), w.note && [" ", el("span", {class: "meta"}, foreign(w.note))]), bodyOf(w)));
}

export class Timeline {
	constructor() {
		this.events = [];
		this.from = 0;
		this.following = this.tail = true;
		this.due = false;
		this.list = el("ol", {class: "timeline", tabindex: "0", "aria-label": "Events, oldest first"});
		this.state = el("p", {class: "meta stream-state"});
		this.where = el("p", {class: "meta"});
		this.earlier = button("Earlier", () => this.move(this.from - STEP), {class: "quiet"});
		this.later = button("Later", () => this.move(this.from + STEP), {class: "quiet"});
		this.newest = button("Newest", () => this.follow(), {class: "quiet"});
		this.pager = el("div", {class: "row pager", hidden: true}, this.earlier, this.later, this.newest, this.where);
		this.list.addEventListener("scroll", () => {
			// Who scrolls up reads; who comes back to the end follows again. What has come and is not drawn yet does not count.
			const end = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
			this.following = end && this.tail;
		});
		this.element = el("section", {class: "panel", "aria-labelledby": "events-title"},
			el("h2", {id: "events-title"}, "Events"), this.state, this.list, this.pager);
	}

	says(state) {
		const words = {live: "Live", polling: "Asked again every second", waiting: "Connection lost; trying again", ended: ""}[state] ?? "";
		this.state.textContent = words;
		this.state.dataset.state = state;
	}

	push(events) {
		for (const e of events)
			this.events.push(e);
		if (!this.due) {
			this.due = true;
			requestAnimationFrame(() => {
				this.due = false;
				this.draw();
			});
		}
	}

	// Adds what is new at the end; where that makes too many, the oldest rows go.
	draw() {
		const shown = this.from + this.list.children.length;
		if (this.following) {
			const from = Math.max(this.from, this.events.length - WINDOW);
			const fresh = this.events.slice(Math.max(shown, from)).map(row);
			this.list.append(...fresh);
			while (this.list.children.length > WINDOW)
				this.list.firstChild.remove();
			this.from = this.events.length - this.list.children.length;
			this.list.scrollTop = this.list.scrollHeight;
		} else if (this.list.children.length < WINDOW) {
			this.list.append(...this.events.slice(shown, this.from + WINDOW).map(row));
		}
		this.tell();
	}

	tell() {
		const n = this.events.length, shown = this.list.children.length;
		this.tail = this.from + shown >= n;
		this.pager.hidden = n <= shown;
		this.earlier.disabled = this.from === 0;
		this.later.disabled = this.newest.disabled = this.tail;
		this.where.textContent = `${number(this.from + 1)} to ${number(this.from + shown)} of ${number(n)}`;
	}

	move(from) {
		this.following = false;
		this.from = Math.max(0, Math.min(from, this.events.length - WINDOW));
		fill(this.list, this.events.slice(this.from, this.from + WINDOW).map(row));
		this.list.scrollTop = 0;
		this.tell();
	}

	follow() {
		this.following = true;
		this.from = Math.max(0, this.events.length - WINDOW);
		this.list.replaceChildren();
		this.draw();
	}
}
