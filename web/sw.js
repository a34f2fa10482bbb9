// The page's own files for when there is no connection, and notices of questions. What the API answers is never kept here.
const CACHE = "pinfold-page";
const FILES = ["./", "manifest.webmanifest", "page/style.css", "page/icon.svg", "page/icon-192.png", "page/badge.png",
	...["app", "api", "card-guard", "cards", "diff", "dom", "push", "sections", "stream", "timeline", "view-devices", "view-pair", "view-run",
		"view-runs", "words"].map(name => `page/${name}.js`)];
const at = path => new URL(path, self.registration.scope).href;

self.addEventListener("install", event => {
	event.waitUntil(caches.open(CACHE).then(c => c.addAll(FILES.map(f => new Request(at(f), {cache: "no-cache"})))).then(() => self.skipWaiting()));
});

self.addEventListener("activate", event => {
	event.waitUntil(caches.keys().then(names => Promise.all(names.filter(n => n !== CACHE && n.startsWith("pinfold-")).map(n => caches.delete(n))))
		.then(() => self.clients.claim()));
});

// The network first, so that what is shown is of the server's version; the copy where there is none.
self.addEventListener("fetch", event => {
	const url = event.request.url.split(/[?#]/)[0];
	if (event.request.method !== "GET" || !FILES.some(f => at(f) === url))
		return;
	event.respondWith((async () => {
		const cache = await caches.open(CACHE);
		try {
			const fresh = await fetch(event.request);
			if (fresh.ok)
				await cache.put(url, fresh.clone());
			return fresh;
		} catch (e) {
			const kept = await cache.match(url);
			if (kept === undefined)
				throw e;
			return kept;
		}
	})());
});

// {kind, runId, requestId, tag, count}: ids and numbers. The sentences are this page's.
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const good = id => typeof id === "string" && ID.test(id);

self.addEventListener("push", event => {
	let m = {};
	try {
		m = event.data.json() ?? {};
	} catch {
		// Told that something waits, and not what.
	}
	const tag = good(m.tag) || /^[\w-]{1,64}$/.test(m.tag ?? "") ? m.tag : "pinfold";
	if (m.kind === "clear")
		return event.waitUntil(self.registration.getNotifications({tag}).then(list => list.forEach(n => n.close())));
	const n = Number.isSafeInteger(m.count) && m.count > 0 ? m.count : 1;
	const summary = m.kind === "summary";
	const title = summary ? "Agents ask" : "An agent asks";
	const body = summary ? `${n} more ${n === 1 ? "question waits" : "questions wait"}. For an hour there are no more notices; the page shows all.` :
		n === 1 ? "A question waits for your answer." : `${n} questions wait for your answer.`;
	const open = good(m.runId) ? `#/run/${encodeURIComponent(m.runId)}${good(m.requestId) ? "/" + encodeURIComponent(m.requestId) : ""}` : "#/";
	event.waitUntil(self.registration.showNotification(title, {body, tag, icon: at("page/icon-192.png"), badge: at("page/badge.png"), data: {open}}));
});

self.addEventListener("notificationclick", event => {
	event.notification.close();
	const open = event.notification.data?.open ?? "#/";
	event.waitUntil((async () => {
		const all = await self.clients.matchAll({type: "window"});
		const mine = all.find(c => c.url.split("#")[0] === at("./")) ?? null;
		if (mine === null)
			return self.clients.openWindow(at("./") + open);
		await mine.focus();
		mine.postMessage({open});
	})());
});
