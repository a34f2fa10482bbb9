"""Archives: how they go to the store, what is refused before, and runs that are made from them."""
import hashlib, json, os, select, time
from fastcgi import *
from rig import Rig


def cases(check, program, rig, good):
    """An archive goes to the store in parts, and nothing is done where it is refused before."""
    def get(path, token=None):
        return ask(rig.path, request("GET", path, token or rig.token))
    def post(path, body):
        return ask(rig.path, request("POST", path, rig.token, json.dumps(body).encode()))
    zstd, gzip = b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08"
    def give(body, kind="application/zstd", token=None, more=()):
        return ask(rig.path, request("POST", "/v1/sources", token or rig.token, body, [("CONTENT_TYPE", kind), *more]))
    body = zstd + os.urandom(300000)
    id = hashlib.sha256(body).hexdigest()
    rig.store.parts.clear()
    a = give(body)
    check("a source", a.status == 201 and set(a.json) == {"sourceId", "bytes", "expiresAt"} and (a.json["sourceId"], a.json["bytes"]) == (id, len(body))
          and a.headers["location"] == "/v1/sources/" + id, a)
    check("it came in parts", rig.store.parts == [(0, 131072), (131072, 131072), (262144, len(body) - 262144)], rig.store.parts)
    check("again", give(body).status == 200)
    exact = zstd + bytes(131068)
    rig.store.parts.clear()
    check("of exactly a part", give(exact).status == 201 and rig.store.parts == [(0, 131072)], rig.store.parts)
    check("in chunks", give(exact, more=[("CONTENT_LENGTH", None), ("HTTP_TRANSFER_ENCODING", "chunked")]).status == 200)
    a = get("/v1/sources/" + id)
    check("as it is known", a.status == 200 and set(a.json) == {"sourceId", "bytes", "createdAt", "expiresAt"} and a.json["bytes"] == len(body), a)
    check("to a device, too", get("/v1/sources/" + id, rig.device).status == 200)
    check("another tenant's is none", refused(get("/v1/sources/" + id, rig.other), 404, "source_not_found"))
    check("a device sends none", refused(give(body, token=rig.device), 403, "forbidden"))
    done = rig.store.done
    for name, sent, kind in (("nothing", b"", "application/zstd"), ("text", b"hello", "application/gzip"), ("a zip", b"PK\3\4" + bytes(600), "application/x-tar"),
                             ("zeros", bytes(10240), "application/x-tar"), ("another kind", gzip + bytes(600), "application/zstd"),
                             ("a tar of less than a block", b"a.py" + bytes(200), "application/x-tar"), ("too short", b"\x1f\x8b", "application/gzip")):
        check(name + " is no archive", refused(give(sent, kind), 400, "invalid_archive"), give(sent, kind))
    for kind in (None, "", "application/octet-stream", "application/json", "application/zstd; q=1", "application/zstdx"):
        check(f"{kind} is no type of archives", refused(give(body, kind), 415, "archive_required"))
    check("nor may it be encoded", refused(give(body, more=[("HTTP_CONTENT_ENCODING", "gzip")]), 415, "unsupported_encoding"))
    for length in ("64000001", "1000000000", "99999999999999999999"):
        check(f"{length} bytes are refused unread", refused(give(b"", more=[("CONTENT_LENGTH", length)]), 413, "source_archive_too_large"))
    check("a length that lies", refused(give(body, more=[("CONTENT_LENGTH", str(len(body) + 1))]), 400, "length_mismatch"))
    check("and in its first part", refused(give(zstd, more=[("CONTENT_LENGTH", "5")]), 400, "length_mismatch"))
    check("and leaves nothing", not rig.store.uploads, rig.store.uploads)
    rig.store.no_uploads = 185, "", 7
    a = give(body)
    check("a crowd is told when to come again", refused(a, 429, "too_many_sources") and a.headers["retry-after"] == "7", a)
    rig.store.no_uploads = None
    check("none of these was taken", rig.store.done == done)
    small = Rig(program, tenant={"max_source_bytes": 200000})
    def to_small(n, chunked):
        return ask(small.path, request("POST", "/v1/sources", small.token, zstd + bytes(n - 4), [("CONTENT_TYPE", "application/zstd"),
                   *([("CONTENT_LENGTH", None), ("HTTP_TRANSFER_ENCODING", "chunked")] if chunked else [])]))
    for chunked in (False, True):
        check("as much as this tenant may send", to_small(200000, chunked).status in (200, 201))
        check("and a byte more", refused(to_small(200001, chunked), 413, "source_archive_too_large"))
    check("which leaves nothing", not small.store.uploads and len(small.store.sources) == 1)
    check("it stops", small.stop() == 0)

    # It has as long as it comes along, and no longer.
    slow = Rig(program, deadline_ms=500)
    sent = zstd + bytes(5 * 131072 - 4)
    with connect(slow.path) as s:
        send(s, begin() + params(environment("POST", "/v1/sources", slow.token, sent, [("CONTENT_TYPE", "application/zstd")])))
        for i in range(5):
            send(s, b"".join(record(STDIN, sent[i * 131072:][j:j + 32768]) for j in range(0, 131072, 32768)))
            time.sleep(0.3)
        send(s, record(STDIN))
        a = receive(s)
    check("a slow one that comes along is taken", a is not None and a.status == 201, a)
    with connect(slow.path) as s:
        send(s, begin() + params(environment("POST", "/v1/sources", slow.token, sent, [("CONTENT_TYPE", "application/zstd")])) + record(STDIN, sent[:1000]))
        a = receive(s)
    check("one that stands still is not", refused(a, 408, "request_timeout"), a)
    fast = zstd + bytes(160 * 131072)  # at the least rate that would be five minutes
    with connect(slow.path) as s:
        send(s, begin() + params(environment("POST", "/v1/sources", slow.token, fast + bytes(10000), [("CONTENT_TYPE", "application/zstd")])))
        for i in range(0, len(fast), 32768):
            send(s, record(STDIN, fast[i:i + 32768]))
        a = wait_for(lambda: select.select([s], [], [], 0.1)[0] or send(s, record(STDIN, b"x"))) and receive(s)
    check("nor one that has come fast and then comes a byte at a time", refused(a, 408, "request_timeout"), a)
    check("and leaves nothing", wait_for(lambda: not slow.store.uploads) and len(slow.store.sources) == 1)
    check("it stops", slow.stop() == 0)

    # A run of it.
    more = {k: v for k, v in good.items() if k != "files"}
    a = post("/v1/runs", dict(more, source=id))
    check("a run from a source", a.status == 202, a)
    x = rig.store.runs["main", a.json["runId"]]
    s = json.loads(x["summary"])
    check("it names the source", x["source"].hex() == id and x["upload"] == b"" and s["source"] == id and not {"files", "fileCount"} & set(s), s)
    o = get("/v1/runs/" + a.json["runId"]).json["request"]
    check("and its snapshot does", o["source"] == id and "fileCount" not in o and o["allowedPaths"] == good["allowedPaths"], o)
    check("allowedPaths are of form alone", post("/v1/runs", dict(more, source=id, allowedPaths=["elsewhere/**"])).status == 202)
    for paths, code in ((["../x"], "invalid_allowed_path"), (["a", "a"], "duplicate_allowed_path"), ([], "invalid_allowed_paths")):
        check(f"{code} all the same", refused(post("/v1/runs", dict(more, source=id, allowedPaths=paths)), 400, code))
    for name, given in (("both", dict(good, source=id)), ("no digest", dict(more, source="x")), ("upper case", dict(more, source=id.upper())),
                        ("a digit less", dict(more, source=id[:63])), ("no text", dict(more, source=7))):
        a = post("/v1/runs", given)
        check(f"source: {name}", refused(a, 400, "invalid_source") and a.field == "source", a)
    a = post("/v1/runs", more)
    check("neither", refused(a, 400, "invalid_files") and a.field == "files", a)
    key = [("HTTP_IDEMPOTENCY_KEY", "from-a-source")]
    def create(body, token=None):
        return ask(rig.path, request("POST", "/v1/runs", token or rig.token, json.dumps(body).encode(), key))
    a = create(dict(more, source=id))
    check("with a key", a.status == 202, a)
    a, b = post("/v1/runs", dict(more, source="0" * 64)), ask(rig.path, request("POST", "/v1/runs", rig.other, json.dumps(dict(more, source=id)).encode()))
    for name, c in (("no source", a), ("another tenant's", b)):
        check(f"a run from {name}", refused(c, 404, "source_not_found") and c.field == "source", c)
    def delete(token=None):
        return ask(rig.path, request("DELETE", "/v1/sources/" + id, token or rig.token))
    check("nobody else takes it away", refused(delete(rig.other), 404, "source_not_found") and refused(delete(rig.device), 403, "forbidden"))
    a = delete()
    check("it goes", a.status == 204 and a.body == b"" and refused(delete(), 404, "source_not_found"), a)
    check("no run is made from it any more", refused(post("/v1/runs", dict(more, source=id)), 404, "source_not_found"))
    check("but under its key it was made", create(dict(more, source=id)).status == 202)
    check("by that key, from another there is none", refused(create(dict(more, source=hashlib.sha256(exact).hexdigest())), 409, "idempotency_conflict"))
