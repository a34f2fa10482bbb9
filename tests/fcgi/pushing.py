"""Web Push as a device's browser asks for it: what a subscription may be, and that its address comes back to nobody."""
import base64, json, os
from fastcgi import *

POINT = bytes.fromhex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")
PATH = "/v1/push/subscriptions"
# FAULTS: each spelling of somewhere else.
ELSEWHERE = ["http://fcm.googleapis.com/x", "https://user@fcm.googleapis.com/x", "https://fcm.googleapis.com:22/x", "https://127.0.0.1/x",
             "https://2130706433/x", "https://0x7f.1/x", "https://[::ffff:127.0.0.1]/x", "https://[::1]/x", "https://localhost./x",
             "https://localhost/x", "https://fcm.googleapis.com/x#y", "https://fcm.googleapis.com", "file:///etc/passwd", "x"]


def text(b):
    return base64.urlsafe_b64encode(b).decode().rstrip("=")


def subscription(endpoint="https://fcm.googleapis.com/fcm/send/abc", point=text(POINT), auth=text(b"0123456789abcdef"), **more):
    return dict({"endpoint": endpoint, "expirationTime": None, "keys": {"p256dh": point, "auth": auth}}, **more)


def cases(check, rig, as_uid):
    def send(verb, body=None, token=None, path=PATH):
        return ask(rig.path, request(verb, path, token or rig.device, b"" if body is None else json.dumps(body).encode()))

    a = send("GET")
    check("without who sends there is no push", refused(a, 503, "push_not_ready") and "retry-after" in a.headers, a)
    rig.store.push_key = POINT
    a = send("GET")
    check("the key to subscribe with", a.status == 200 and a.json == {"publicKey": text(POINT), "subscribed": False}, a)
    check("not for an API token", refused(send("GET", token=rig.token), 403, "device_required"))
    check("nor may it subscribe", refused(send("POST", subscription(), rig.token), 403, "device_required"))
    a = send("POST", subscription())
    check("a browser subscribes", a.status == 201 and a.json == {"publicKey": text(POINT), "subscribed": True}, a)
    (endpoint, point, auth, by), = rig.store.subscriptions.values()
    check("with what it gave", (endpoint, point, auth) == ("https://fcm.googleapis.com/fcm/send/abc", POINT, b"0123456789abcdef") and by.startswith("device:"),
          rig.store.subscriptions)
    check("its address comes back to nobody", b"fcm.googleapis.com" not in a.body + send("GET").body)
    a = send("POST", subscription("https://updates.push.example.com:443/x?y=%2f", expirationTime=1.5))
    check("another takes its place", a.status == 201 and [s[0] for s in rig.store.subscriptions.values()] == ["https://updates.push.example.com:443/x?y=%2f"], a)

    for bad in ELSEWHERE:
        a = send("POST", subscription(bad))
        check(f"not to {bad}", refused(a, 400, "invalid_push_endpoint") and a.field == "endpoint" and (len(bad) < 2 or bad not in a.body.decode()), a)
    a = send("POST", subscription("https://fcm.googleapis.com/" + 1000 * "x"))
    check("nor to one that is too long", refused(a, 400, "invalid_push_endpoint") and a.field == "endpoint", a)
    for other in ("https://example.com/x", "https://push.example.com/x", "https://fcm.googleapis.com.evil.example/x", "https://xfcm.googleapis.com/x"):
        a = send("POST", subscription(other))
        check(f"nor to a stranger: {other}", refused(a, 400, "push_host_not_allowed") and a.field == "endpoint" and other not in a.body.decode(), a)
    beside = bytearray(POINT)
    beside[40] ^= 1
    for name, point in {"cut": text(POINT[:-1]), "longer": text(POINT + b"x"), "compressed": text(b"\x02" + POINT[1:33]), "beside the curve": text(bytes(beside)),
                        "nothing": "A", "padded": text(POINT) + "=", "of the other alphabet": text(POINT).replace("_", "/").replace("-", "+"),
                        "not canonical": text(POINT)[:-1] + "V"}.items():
        a = send("POST", subscription(point=point))
        check(f"a key that is {name}", refused(a, 400, "invalid_push_subscription") and a.field == "keys.p256dh", a)
    for name, auth in {"short": text(b"x" * 15), "long": text(b"x" * 17), "padded": text(b"x" * 16) + "==", "none": "!"}.items():
        a = send("POST", subscription(auth=auth))
        check(f"an auth that is {name}", refused(a, 400, "invalid_push_subscription") and a.field == "keys.auth", a)
    for name, body, field, error in [
            ("no endpoint", {"keys": {"p256dh": "x", "auth": "y"}}, "endpoint", "invalid_push_endpoint"), ("no keys", {"endpoint": "https://a.b/"}, "keys", "invalid_push_subscription"),
            ("no auth", {"endpoint": "https://a.b/", "keys": {"p256dh": "x"}}, "keys.auth", "invalid_push_subscription"),
            ("more than it has", subscription(evil=1), "evil", "unknown_field"), ("an end that is none", subscription(expirationTime="never"), "expirationTime", "invalid_push_subscription")]:
        a = send("POST", body)
        check(name, refused(a, 400, error) and a.field == field, a)
    check("none of them took its place", [s[0] for s in rig.store.subscriptions.values()] == ["https://updates.push.example.com:443/x?y=%2f"])
    for uid in (100000, 100015):
        check(f"uid {uid} of a sandbox subscribes nothing", as_uid(uid, request("POST", PATH, rig.device, json.dumps(subscription()).encode())) == "403 caller_refused")
        check(f"uid {uid} of a sandbox ends nothing", as_uid(uid, request("DELETE", PATH, rig.device)) == "403 caller_refused")
    rig.store.crowded = True
    check("no more than there may be", refused(send("POST", subscription()), 409, "too_many_push_devices"))
    rig.store.crowded = False
    check("another's ends nothing of this one", send("DELETE", token=rig.store.token("main", 2)).status == 204 and len(rig.store.subscriptions) == 1)
    check("it ends", send("DELETE").status == 204 and not rig.store.subscriptions and not send("GET").json["subscribed"])
    check("twice is once", send("DELETE").status == 204)
    said = open(rig.dir + "/log", errors="replace").read()
    check("no log has an address", "fcm.googleapis" not in said and "push.example" not in said, said)
    rig.store.push_key = b""
    check("and none without who sends", refused(send("POST", subscription()), 503, "push_not_ready"))
