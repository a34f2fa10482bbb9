// Opens what a push service was sent, as a browser would: lines of {"key": private, "public", "auth", "body"}, all in base64,
// come back as {"text"} or {"error"}.
import { createECDH } from "node:crypto";
import { createInterface } from "node:readline";
import ece from "http_ece";

for await (const line of createInterface({ input: process.stdin })) {
	const m = JSON.parse(line), key = createECDH("prime256v1");
	key.setPrivateKey(Buffer.from(m.key, "base64"));
	try {
		const text = ece.decrypt(Buffer.from(m.body, "base64"), { version: "aes128gcm", privateKey: key, authSecret: Buffer.from(m.auth, "base64") });
		console.log(JSON.stringify({ text: text.toString("utf8") }));
	} catch (e) {
		console.log(JSON.stringify({ error: String(e) }));
	}
}
