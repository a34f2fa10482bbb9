// The page as a whole: which view is shown, whether the device is paired, what waits, whether the server is there.
import {call, listen, polled} from "./api.js";
import {el, fill, heard} from "./dom.js";
import {register} from "./push.js";
import {errorBox} from "./sections.js";
import {devicesView} from "./view-devices.js";
import {codeOf, pairView} from "./view-pair.js";
import {runView} from "./view-run.js";
import {runsView} from "./view-runs.js";

const main = document.getElementById("main"), nav = document.getElementById("nav"), count = document.getElementById("count");
const offline = document.getElementById("offline");
let leave = new AbortController();
let paired = false, reachedAt = null, waiting = 0;

// What waits for an answer in all runs. Views hear of it; the title and the badge show how many.
const inbox = {pending: null, count: 0, seconds: 2, asked: 0, heard: new Set()};
const box = polled("v1/inbox?limit=50");
let timer = 0, asking = false;

function entitle() {
	const h1 = main.querySelector("h1")?.textContent ?? "";
	document.title = (waiting > 0 ? `(${waiting}) ` : "") + (h1 === "" ? "Pinfold" : `${h1} \u00b7 Pinfold`);
}

function tell(n) {
	waiting = n;
	entitle();
	fill(count, String(n), heard(n === 1 ? " question" : " questions"));
	count.hidden = n === 0;
	(n > 0 ? navigator.setAppBadge?.(n) : navigator.clearAppBadge?.())?.catch(() => {});
}

async function ask() {
	clearTimeout(timer);
	if (!paired || asking)
		return;
	asking = true;
	inbox.asked = performance.now();
	try {
		const found = await box.get();
		if (found !== null) {
			inbox.pending = found.pending;
			inbox.count = found.count;
			inbox.seconds = found.pollSeconds;
			tell(found.count);
			for (const hear of inbox.heard)
				hear(found.pending);
		}
	} catch {
		// Offline is said at the top; who is not paired any more is at the pairing already.
	}
	asking = false;
	if (paired)
		timer = setTimeout(ask, (document.hidden ? 10 : inbox.seconds) * 1000);
}
document.addEventListener("visibilitychange", () => document.hidden || ask());

// One tap, one answer: what waits is asked for again at once.
const nudge = () => { clearTimeout(timer); timer = setTimeout(ask, 50); };

function unpair(why) {
	paired = false;
	nav.hidden = true;
	tell(0);
	inbox.pending = null;
	box.forget();
	show(pairView, {why, code: ""});
}

function show(view, parameters) {
	leave.abort();
	leave = new AbortController();
	scrollTo(0, 0);
	view(main, parameters, {signal: leave.signal, inbox, nudge, paired: start, left: () => unpair(null)});
	entitle();
}

function route() {
	const given = /^#(?:pair=)?([A-Za-z0-9-]{8,9})$/.exec(location.hash);
	const code = given && codeOf(given[1]);
	if (code) {
		// It is good once; it need not stay in the history.
		history.replaceState(null, "", location.pathname + location.search);
		if (!paired)
			return show(pairView, {code});
	}
	if (!paired)
		return;
	const [name = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decode);
	const current = name === "devices" ? "devices" : "runs";
	for (const a of nav.querySelectorAll("a"))
		a.dataset.view === current ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
	if (name === "run" && rest[0])
		show(runView, rest);
	else
		show(name === "devices" ? devicesView : runsView, rest);
}

function decode(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

// Whoever may list devices is paired. Until that is known it is asked again by itself: a page that was opened without a
// connection finds one.
let again = 0;
async function start() {
	clearTimeout(again);
	again = 0;
	try {
		await call("GET", "v1/devices");
	} catch (e) {
		if (e.status !== 401) {
			if (main.querySelector(".wrong")?.firstChild.textContent !== e.message)
				fill(main, el("h1", {}, "Pinfold"), errorBox(e, start));
			again = setTimeout(start, 3000);
		}
		return;
	}
	paired = true;
	nav.hidden = false;
	route();
	ask();
}

listen({
	unpaired(e) {
		const was = paired;
		const given = /^#(?:pair=)?([A-Za-z0-9-]{8,9})$/.exec(location.hash);
		unpair(e.code === "device_expired" ? "The pairing of this device has expired. Pair it again to go on." :
			was ? "This device is not paired any more. Pair it again to go on." : null);
		if (given)
			route();
	},
	reached() {
		reachedAt = new Date();
		offline.hidden = true;
	},
	lost() {
		offline.textContent = reachedAt === null ? "The server does not answer. Trying again." :
			`No connection. What you see is of ${reachedAt.toLocaleTimeString()}; trying again.`;
		offline.hidden = false;
	},
});

addEventListener("hashchange", route);
// The address says which view is shown, so it cannot be the place in it as well.
document.querySelector(".skip").addEventListener("click", e => {
	e.preventDefault();
	main.focus();
});
addEventListener("online", () => again === 0 ? ask() : start());
navigator.serviceWorker?.addEventListener("message", e => {
	if (typeof e.data?.open === "string" && e.data.open.startsWith("#/"))
		location.hash = e.data.open;
	ask();
});
start();
register();
