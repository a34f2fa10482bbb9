#!/usr/bin/python3 -B
"""tests/vectors/utf8.tab in bodies: as text, as a key, at the end of a body, outside a string; in headers and targets."""
from boundary import *
from client import *

mine, front = token(), Front()
cases = [(name, ok == "yes", bytes.fromhex(h)) for name, ok, h in vectors("utf8.tab")]
check("enough cases", len(cases) > 80, len(cases))
BODY = doomed(instruction="@1", files=[{"path": "a.py", "content": "@2"}])


def says(what, body, want):
    a = front.call("POST", "/v1/runs", mine, body)
    check(what, a is not None and (a.status, a.error) == want, a)


with Unharmed():
    for name, ok, data in cases:
        # A control byte is UTF-8, but in JSON it must be escaped.
        fine = ok and data[0] >= 0x20
        bad = (400, "invalid_json")
        says(f"{name} as an instruction", BODY.replace(b"@1", b"x" + data + b"x"), PASSED_ALL if fine else bad)
        says(f"{name} as a file", BODY.replace(b"@2", data), PASSED_ALL if fine else bad)
        says(f"{name} as a key", BODY.replace(b'"instruction":', b'"' + data + b'":1,"instruction":'), (400, "unknown_field") if fine else bad)
        says(f"{name} in a path", BODY.replace(b"a.py", b"a" + data + b".py"), (400, "invalid_source_path") if fine else bad)
        says(f"{name} outside a string", b"{" + data + b"}", bad)
        says(f"{name} behind the body", BODY + data, bad)
        says(f"{name} before the body", data + BODY, bad)
        # A header or a target holds printable ASCII or is refused, here or by the web server before us.
        for what, a in (("bearer", front.call("GET", "/v1/runs", b"pfa_" + data)),
                        ("target", front.call("GET", b"/v1/runs/a" + data, mine)),
                        ("query", front.call("GET", b"/v1/runs?after=" + data, mine))):
            check(f"{name} in a {what}", a is None or a.status in ((400, 401) if what == "bearer" else (400, 404)), a)
            if a is None or "connection" in a.headers:
                front.close()
    # What is whole comes back as it was, in an error's field too.
    for name, ok, data in cases:
        if ok and data[0] >= 0x20:
            a = front.call("POST", "/v1/runs", mine, b'{"' + data + b'":1}')
            check(f"{name} comes back", a is not None and a.error == "unknown_field" and a.field == data.decode(), a)
done()
