// A tap is meant for what was under the finger when it was aimed. What has just appeared or moved is not that yet.

// Pure: at(place, now) says whether this place has been the same for long enough.
export class Still {
	constructor(ms = 500) {
		this.ms = ms;
		this.place = null;
		this.since = 0;
	}
	at(place, now) {
		if (place !== this.place) {
			this.place = place;
			this.since = now;
		}
		return now - this.since >= this.ms;
	}
}

// Where an element is on the page: scrolling moves the page, not the element on it.
const placeOf = e => {
	const r = e.getBoundingClientRect();
	return `${Math.round(r.left + scrollX)}:${Math.round(r.top + scrollY)}`;
};

const watched = new Map();
let due = false;

function sample() {
	due = false;
	const now = performance.now();
	for (const [e, still] of watched) {
		if (e.isConnected)
			still.at(placeOf(e), now);
		else
			watched.delete(e);
	}
}

function soon() {
	if (!due && watched.size > 0) {
		due = true;
		requestAnimationFrame(sample);
	}
}

let looking = false;
function look() {
	looking = true;
	new MutationObserver(soon).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
	new ResizeObserver(soon).observe(document.body);
}

// From now on settled(e) says whether e has stood still for half a second.
export function watch(e) {
	if (!looking)
		look();
	watched.set(e, new Still());
	soon();
}

export function settled(e) {
	const still = watched.get(e);
	return still !== undefined && e.isConnected && still.at(placeOf(e), performance.now());
}
