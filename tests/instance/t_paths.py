#!/usr/bin/python3 -B
"""Some hundred ways to write a path that leads elsewhere: as a source path, as an allowed path, and in a request's target.
What is right is decided here by one regular expression."""
import re
from boundary import *
from client import *

PART = r"(?!-)(?!\.{1,2}(?:/|$))(?!\.git(?:modules|attributes)?\.*(?:/|$))[A-Za-z0-9._-]+"
PATH = re.compile(rf"(?i:{PART}(?:/{PART})*)\Z")
UP = ["..", ". .", "...", "..;", "..%00", "%2e%2e", "%2E%2E", "%252e%252e", ".%2e", "%2e.", "..%c0%af", "%c0%ae%c0%ae", "\u2024\u2024",
      "\uff0e\uff0e", "..\u200b", "\u202e..", "..\t", " ..", ".. ", "..\x7f", "..\n", "\x00..", "..\\", "..\u2215", "..\u2044", ".", "", "~", "-", "--help"]
SEP = ["/", "\\", "//", "/./", "%2f", "%5c", "%252f", "\u2215", "\uff0f", "\\/"]
NAMED = [".git", ".GIT", ".Git", ".git.", ".git..", ".gIt/config", "x/.git", "x/.git/hooks/post-checkout", ".gitmodules", ".GITMODULES",
         ".gitattributes", "x/.gitattributes", ".gitattributes.", ".git ", ".git\\config", "git~1", "GIT~1", ".g\u200dit", ".git\u200c", ".git::$INDEX_ALLOCATION",
         ".gi\u0074", "\uff0egit", "/etc/passwd", "//etc/passwd", "/", "C:\\boot.ini", "C:/boot.ini", "c:a.py", "\\\\server\\share\\a.py", "//server/share",
         "file:///etc/passwd", "http://h/a.py", "a.py:stream", "a.py::$DATA", "con", "CON.py", "aux.py", "nul", "a.py.", "a.py ", " a.py", "a.py/", "a.py/.",
         "a.py/..", "./a.py", ".//a.py", "a//b.py", "a/./b.py", "a/../b.py", "a\x00.py", "a.py\x00", "a.py\x00.txt", "a\n.py", "a\r.py", "a\t.py", "a\x1b[2J.py",
         "a\u202epy.b", "caf\u00e9.py", "cafe\u0301.py", "a*.py", "a?.py", "[a].py", "{a,b}.py", "**", "*/**", "a/**/b", "a/**", "/**", "../**", ".git/**", "-/**",
         "$HOME/a.py", "`id`.py", "$(id).py", "a;id.py", "a|id.py", "a&id.py", "a'b.py", 'a"b.py', "%a.py", "%s%n.py", "~root/a.py", "~/a.py", "-rf", "--", "x/-rf",
         "x/--upload-pack=id", "proc/self/environ", "dev/null", "a" * 160, "a" * 161, "a" * 157 + ".py", "a" * 158 + ".py", "a/" * 79 + "a", "a/" * 80 + "a", ".", "..", "...", "....",
         ".a", "..a", "a..", "a...py", "a-b_c.d.py", "A/B/C.PY", "0", "_", "a b.py", "a,b.py", "a@b.py", "a+b.py", "a=b.py", "a#b.py", "a:b"]
SPELLINGS = list(dict.fromkeys(NAMED + [u + s + t for u in UP for s in SEP for t in ("a.py", "..", ".git")] +
                               ["d/" + u + "/a.py" for u in UP] + ["a/" + s.join([u] * 8) for u in UP[:12] for s in SEP]))
EXTENSIONS = (".py", ".toml", ".md", ".txt", ".json", ".yaml", ".yml", ".ini", ".cfg")

mine, front = token(), Front()
check("some hundred spellings", len(SPELLINGS) > 800, len(SPELLINGS))


def source(p):
    if "\x00" in p:
        return (400, "invalid_json")
    if not PATH.match(p) or len(p) > 160:
        return (400, "invalid_source_path")
    return PASSED_ALL if re.search(r"\.[^./]*\Z", p) and p[p.rindex("."):].lower() in EXTENSIONS else (400, "unsupported_source_type")


def allowed(p):
    if "\x00" in p:
        return (400, "invalid_json")
    q = p[:-3] if p.endswith("/**") and len(p) > 3 else p
    if not PATH.match(q) or len(p) > 160:
        return (400, "invalid_allowed_path")
    return PASSED_ALL if p == "a.py" else (400, "unbound_allowed_path")  # a path, but of no uploaded file


def malformed(target):
    """Is this no plain path? Bad or dangerous escapes, bytes that are no UTF-8, a backslash, an empty segment or one of dots."""
    if "\\" in target or re.search(r"%(?![0-9A-Fa-f]{2})", target):
        return True
    if any(int(h, 16) < 0x20 or int(h, 16) in (0x7f, 0x2f, 0x5c) for h in re.findall(r"%(..)", target)):
        return True
    try:
        parts = urllib.parse.unquote_to_bytes(target[1:]).decode().split("/")
    except UnicodeDecodeError:
        return True
    return "" in parts[:-1] or any(x in (".", "..") for x in parts)


with Unharmed():
    for p in SPELLINGS:
        want = source(p)
        a = front.call("POST", "/v1/runs", mine, doomed(files=[{"path": p, "content": ""}], allowedPaths=[p if want == PASSED_ALL else "a.py"]))
        check(f"source {p!r}", a is not None and (a.status, a.error) == want, f"{a}, not {want}")
        want = allowed(p)
        a = front.call("POST", "/v1/runs", mine, doomed(allowedPaths=["a.py", p] if p != "a.py" else [p]))
        check(f"allowed {p!r}", a is not None and (a.status, a.error) == want, f"{a}, not {want}")
    secret = mine.encode()
    page = front.call("GET", "/")
    check("the page", page is not None and page.status == 200 and page.body.startswith(b"<!doctype html>"), page)
    for target in dict.fromkeys(before + urllib.parse.quote(p, safe=keep) for p in SPELLINGS for keep in ("/%", "", "/.%\\")
                                for before in ("/", "/v1/runs/", "/v1/runs/x/artifacts/")):
        if target == "/":
            continue
        a = front.call("GET", target, mine)
        if a is None or a.error is None:
            # The web server answered for itself, or closed. What it takes for "/" is the page, as it is for anybody.
            fine = a is None or a.status in (400, 403, 404) or (a.status, a.body) == (200, page.body)
        elif malformed(target):
            fine = (a.status, a.error) == (400, "invalid_request")
        else:
            fine = a.status == 404 and a.error in ("not_found", "run_not_found")
        check(f"GET {target}", fine and (a is None or b"root:" not in a.body and secret not in a.body), a)
done()
