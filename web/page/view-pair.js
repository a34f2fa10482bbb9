// Pairing: the only view of a device that has none. The code may have come with the address; a tap is needed all the same,
// so that nobody is paired by a link alone.
import {call} from "./api.js";
import {button, el, fill} from "./dom.js";
import {errorBox} from "./sections.js";

const LETTERS = "ABCDEFGHJKMNPQRSTWXYZ23456789";

// As it is printed, whatever was typed around it: null where that is no code.
export function codeOf(typed) {
	const code = typed.toUpperCase().replace(/[\s-]/g, "");
	return code.length === 8 && [...code].every(c => LETTERS.includes(c)) ? code : null;
}

function guess() {
	const mobile = navigator.userAgentData?.mobile ?? /Mobi|Android|iPhone/.test(navigator.userAgent);
	const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(navigator.userAgent)?.[0]?.replace("Mac OS", "Mac") ?? "";
	return `${mobile ? "Phone" : "Computer"}${system === "" ? "" : ` (${system})`}`;
}

export function pairView(main, {code = "", why = null}, {paired}) {
	const trouble = el("div", {});
	const field = el("input", {id: "code", name: "code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: "false", maxlength: 12,
		inputmode: "text", "aria-describedby": "code-help", required: true, value: code === "" ? null : `${code.slice(0, 4)}-${code.slice(4)}`});
	const label = el("input", {id: "label", name: "label", autocomplete: "off", maxlength: 48, required: true, "aria-describedby": "label-help", value: guess()});
	const go = button("Pair this device", null, {class: "primary wide", type: "submit"});
	const wrong = (input, text) => {
		fill(trouble, el("p", {class: "panel wrong", role: "alert"}, text));
		input.setAttribute("aria-invalid", "true");
		input.focus();
	};
	let busy = false;

	async function submit(event) {
		event.preventDefault();
		if (busy)
			return;
		field.removeAttribute("aria-invalid");
		label.removeAttribute("aria-invalid");
		const typed = codeOf(field.value);
		if (typed === null)
			return wrong(field, "A code has eight letters and digits, such as ABCD-2345.");
		if (label.value.trim() === "")
			return wrong(label, "Give this device a name by which you know it again.");
		busy = go.disabled = true;
		try {
			await call("POST", "v1/pair", {code: typed, label: label.value.trim(), cookie: true});
			return paired();
		} catch (e) {
			if (e.code === "invalid_pairing_code")
				wrong(field, "This code is wrong, used up or too old. Have a new one made.");
			else if (e.code === "device_exists")
				wrong(label, "Another device has this name. Choose another one.");
			else if (e.code === "invalid_device_label")
				wrong(label, "A name has at most 48 characters, all to be seen, and no slash.");
			else
				fill(trouble, errorBox(e));
		} finally {
			busy = go.disabled = false;
		}
	}

	fill(main, el("div", {class: "pairing"},
		el("h1", {tabindex: "-1"}, "Pair this device"),
		why && el("p", {class: "panel wrong"}, why),
		el("p", {}, "A paired device sees the runs and answers what their agents ask. The administrator makes a code with ",
			el("code", {}, "pinfold device pair"), "."),
		el("form", {class: "panel", onsubmit: submit, novalidate: true},
			el("label", {for: "code"}, "Pairing code"), field, el("p", {class: "meta", id: "code-help"}, "Eight characters, good once, for ten minutes."),
			el("label", {for: "label"}, "Name of this device"), label, el("p", {class: "meta", id: "label-help"}, "Others see by it who decided."),
			trouble, go)));
	(code === "" ? field : go).focus({preventScroll: true});
}
