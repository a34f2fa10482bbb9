// Notices of questions while the page is closed. The browser's push service carries ids and counts alone.
import {call} from "./api.js";

// The service worker's address is the one script that is loaded by name; nothing else passes.
const scripts = globalThis.trustedTypes?.createPolicy("pinfold", {
	createScriptURL(url) {
		if (url !== "sw.js")
			throw new TypeError("no script of this page: " + url);
		return url;
	},
});

export async function register() {
	if (!("serviceWorker" in navigator))
		return null;
	try {
		return await navigator.serviceWorker.register(scripts?.createScriptURL("sw.js") ?? "sw.js", {updateViaCache: "none"});
	} catch {
		// A private window, say: the page works without it, but not offline and not closed.
		return null;
	}
}

const bytes = base64url => Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0));

// Why there can be no push here, in a sentence; null where there can.
export function obstacle() {
	if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window))
		return "This browser has no push notices. On a phone, adding the page to the home screen may help.";
	return Notification.permission === "denied" ? "Notices from this page are blocked in this browser's settings." : null;
}

// {on, key}: key null where the server has none.
export async function state() {
	const registration = await navigator.serviceWorker.getRegistration();
	const mine = await registration?.pushManager.getSubscription();
	const {body} = await call("GET", "v1/push/subscriptions");
	return {on: body.subscribed && mine !== null && mine !== undefined, key: body.publicKey};
}

export async function on(key) {
	if (await Notification.requestPermission() !== "granted")
		throw new Error("The browser was not allowed to show notices. Allow them in its settings, then try again.");
	const registration = await navigator.serviceWorker.ready;
	// One that was made with another key cannot be used with this one.
	await (await registration.pushManager.getSubscription())?.unsubscribe();
	const subscription = await registration.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: bytes(key)}).catch(e => {
		throw new Error(`The browser's push service did not take this page (${e.message}). Try again later.`);
	});
	const {endpoint, expirationTime, keys} = subscription.toJSON();
	try {
		await call("POST", "v1/push/subscriptions", {endpoint, expirationTime: expirationTime ?? null, keys: {p256dh: keys.p256dh, auth: keys.auth}});
	} catch (e) {
		await subscription.unsubscribe();
		throw e;
	}
}

export async function off() {
	await call("DELETE", "v1/push/subscriptions");
	const registration = await navigator.serviceWorker.getRegistration();
	await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

// The notice of a question that is over goes, where this device shows one; the push that takes it back may be late.
export async function answered(run, request) {
	const open = `#/run/${encodeURIComponent(run)}/${encodeURIComponent(request)}`;
	const registration = await navigator.serviceWorker?.getRegistration();
	for (const n of await registration?.getNotifications() ?? [])
		if (n.data?.open === open)
			n.close();
}
