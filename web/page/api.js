// Calls to the API beside this page. The cookie is the credential; no script can read it.

export class ApiError extends Error {
	constructor(status, code, message, requestId, body) {
		super(message);
		this.status = status;
		this.code = code;
		this.requestId = requestId;
		this.body = body;
	}
}

const listeners = {unpaired: () => {}, reached: () => {}, lost: () => {}};

// app.js hears here of what concerns the whole page: no pairing any more, the server reached, the server lost.
export const listen = more => Object.assign(listeners, more);

// Relative to the page, so that it works below any prefix.
export const address = path => new URL(path, new URL(".", document.baseURI)).href;

export const runPath = (run, rest = "") => `v1/runs/${encodeURIComponent(run)}${rest}`;

async function errorOf(response) {
	let body = null;
	try {
		body = await response.json();
	} catch {
		// Not ours: a proxy's page, or nothing.
	}
	const id = body?.requestId ?? response.headers.get("x-request-id");
	return new ApiError(response.status, body?.error ?? "http_" + response.status,
		body?.message ?? `The server answered ${response.status}. Try again in a moment.`, id, body);
}

// The raw answer, for streams and texts. Throws an ApiError on anything but 2xx and 304.
export async function request(method, path, {body, headers = {}, signal} = {}) {
	let response;
	try {
		response = await fetch(address(path), {
			method, signal, redirect: "error", cache: "no-store", credentials: "same-origin",
			headers: body === undefined ? headers : {"content-type": "application/json", ...headers},
			body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch (e) {
		if (signal?.aborted)
			throw e;
		listeners.lost();
		throw new ApiError(0, "unreachable", "The server does not answer. Is this device online?", null, null);
	}
	listeners.reached();
	if (response.ok || response.status === 304)
		return response;
	const error = await errorOf(response);
	// A wrong pairing code is 401, too, and no end of a pairing.
	if (response.status === 401 && error.code !== "invalid_pairing_code")
		listeners.unpaired(error);
	throw error;
}

export async function call(method, path, body, signal) {
	const response = await request(method, path, {body, signal});
	const text = await response.text();
	return {status: response.status, body: text === "" ? null : JSON.parse(text)};
}

// What is polled: null while it has not changed since the last time it was asked.
export function polled(path) {
	let etag = null;
	return {
		forget: () => { etag = null; },
		async get(signal) {
			const response = await request("GET", path, {signal, headers: etag === null ? {} : {"if-none-match": etag}});
			if (response.status === 304)
				return null;
			const body = await response.json();
			etag = response.headers.get("etag");
			return body;
		},
	};
}
