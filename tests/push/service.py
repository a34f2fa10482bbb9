"""What the tests of push share: a scripted push service over TLS, browsers that subscribe, and what opens their messages."""
import base64, hashlib, json, os, socket, ssl, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
from patience import PATIENCE, wait_for
from npm import npm

ECE = ("http_ece", "1.2.1")


def b64(b):
    return base64.urlsafe_b64encode(b).rstrip(b"=").decode()


def unb64(s):
    return base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))


def openssl(*argv, give=None):
    return subprocess.run(["openssl", *argv], input=give, capture_output=True, check=True).stdout


def certificates(folder, *names):
    """folder/ca.pem, folder/cert.pem, folder/key.pem for these names."""
    at = lambda name: os.path.join(folder, name)
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-batch")
    openssl(*new, "-x509", "-days", "30", "-subj", "/CN=test authority", "-keyout", at("ca.key"), "-out", at("ca.pem"))
    openssl(*new, "-subj", "/CN=test", "-keyout", at("key.pem"), "-out", at("csr.pem"))
    with open(at("ext"), "w") as f:
        f.write("subjectAltName=" + ",".join("DNS:" + n for n in names))
    openssl("x509", "-req", "-in", at("csr.pem"), "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "30",
            "-extfile", at("ext"), "-out", at("cert.pem"))


class Browser:
    """Somebody who subscribed: a pair of keys and a secret."""

    def __init__(self, endpoint):
        pem = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout")
        text = openssl("ec", "-text", "-noout", give=pem).decode().replace("\n    ", "").replace(":", "")
        self.key = bytes.fromhex(text.split("priv")[1].split("pub")[0].strip()).rjust(32, b"\0")[-32:]
        self.public = bytes.fromhex(text.split("pub")[1].split("ASN1")[0].strip())
        self.auth, self.endpoint = os.urandom(16), endpoint
        assert len(self.public) == 65

    def subscription(self):
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": {"p256dh": b64(self.public), "auth": b64(self.auth)}}

    def opens(self, *bodies):
        """What is in them, by the npm package http_ece: texts, or None where one cannot be opened."""
        folder, wrong = npm(*ECE)
        if wrong:
            raise SystemExit("FAIL " + wrong)
        asked = "".join(json.dumps({"key": base64.b64encode(self.key).decode(), "auth": base64.b64encode(self.auth).decode(),
                                    "body": base64.b64encode(b).decode()}) + "\n" for b in bodies)
        with tempfile.TemporaryDirectory() as d:  # a module finds its packages beside itself
            os.symlink(os.path.dirname(folder), d + "/node_modules")
            with open(os.path.join(HERE, "open.mjs")) as f, open(d + "/open.mjs", "w") as to:
                to.write(f.read())
            said = subprocess.run(["node", "open.mjs"], cwd=d, input=asked, text=True, capture_output=True, timeout=PATIENCE)
        assert said.returncode == 0, said.stderr
        return [json.loads(line).get("text") for line in said.stdout.splitlines()]


def verified(header, origin, contact):
    """The claims of "vapid t=..., k=..." when its signature is good and it says what it must, and its public key."""
    kind, _, rest = header.partition(" ")
    parts = dict(p.strip().split("=", 1) for p in rest.split(","))
    point, (head, claims, signature) = unb64(parts["k"]), parts["t"].split(".")
    assert kind == "vapid" and sorted(parts) == ["k", "t"] and json.loads(unb64(head)) == {"typ": "JWT", "alg": "ES256"}
    said = json.loads(unb64(claims))
    assert said["aud"] == origin and said["sub"] == contact and 0 < said["exp"] - time.time() <= 24 * 3600, said
    spki = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + point
    r, s = (int.from_bytes(unb64(signature)[i:i + 32], "big") for i in (0, 32))
    num = lambda v: b"\x02" + bytes([(v.bit_length() // 8) + 1]) + v.to_bytes(v.bit_length() // 8 + 1, "big")
    der = num(r) + num(s)
    with tempfile.TemporaryDirectory() as d:
        for name, what in (("key", spki), ("sig", b"\x30" + bytes([len(der)]) + der), ("text", f"{head}.{claims}".encode())):
            with open(f"{d}/{name}", "wb") as f:
                f.write(what)
        openssl("dgst", "-sha256", "-verify", d + "/key", "-keyform", "DER", "-signature", d + "/sig", d + "/text")
    return said, point


class Request:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body


class Service:
    """A push service. What it answers is said by the path of the endpoint, "/201/whatever", or by script[path]; after "gate+" not before the gate is opened."""

    def __init__(self, folder, port=0, keep=True, host="127.0.0.1"):
        self.requests, self.script, self.connections, self.lock, self.gate = [], {}, 0, threading.Lock(), threading.Event()
        self.tls, self.keep = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), keep
        self.tls.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
        self.listener = socket.create_server((host, port), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            c.settimeout(PATIENCE)
            c = self.tls.wrap_socket(c, server_side=True)
            f = c.makefile("rb")
            while self.one(c, f):
                pass
        except (OSError, ValueError):
            pass
        finally:
            c.close()

    def one(self, c, f):
        words = f.readline().split()
        if not words:
            return False
        headers = {}
        for line in iter(f.readline, b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            assert name.lower() not in headers, name
            headers[name.lower()] = value.strip()
        body = f.read(int(headers.get("content-length", "0")))
        path = words[1].decode()
        with self.lock:
            self.requests.append(Request(path, headers, body))
            left = self.script.get(path)
            word = left.pop(0) if left else path.split("/")[1]
        word, _, more = word.partition("+")
        if word == "gate":
            self.gate.wait(PATIENCE)
            word = more
            more = ""
        if word == "hang":
            c.recv(1)
        elif word == "cut":
            return False
        elif word == "endless":  # a body, or headers, without end
            c.sendall(b"HTTP/1.1 %s OK\r\n%s" % ((more or "201").encode(), b"\r\n" if more != "head" else b""))
            while True:
                c.sendall(b"x-more: " + b"x" * 1000 + b"\r\n")
        elif word == "noise":
            c.sendall(b"this is no HTTP at all\r\n\r\n")
            return False
        else:
            to = {"301": headers["host"], "307": headers["host"], "308": f"127.0.0.1:{self.port}"}.get(word)
            extra = b"Location: https://%s/201/followed\r\n" % to.encode() if to else b""
            extra += b"Retry-After: %s\r\n" % more.replace("_", " ").encode() if more else b""
            c.sendall(b"HTTP/1.1 %s Whatever\r\n%sContent-Length: 5\r\n\r\nhello" % (word.encode(), extra))
            return self.keep
        return False

    def at(self, path):
        with self.lock:
            return [r for r in self.requests if r.path == path]
