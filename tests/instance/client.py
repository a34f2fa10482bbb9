"""What the instance tests share: calls to the API, runs with a script as the agent, counting."""
import json, os, subprocess, sys, time, urllib.error, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from patience import PATIENCE, wait_for

URL = os.environ["PINFOLD_URL"]
INSTANCE = os.environ["PINFOLD_INSTANCE"]
CLI = os.environ["PINFOLD_CLI"]
passed = failed = 0


def token(name="api-token"):
    with open(os.path.join(INSTANCE, name)) as f:
        return f.read().strip()


def operator(*words):
    """Runs an operator's command and returns its output."""
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE)
    return subprocess.run([CLI, *words], env=env, check=True, capture_output=True, text=True).stdout


def call(method, path, body=None, bearer=None, headers=()):
    """(status, headers, bytes); body is sent as JSON unless it is bytes already."""
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    req = urllib.request.Request(URL + path, data=data, method=method)
    if data is not None:
        req.add_header("Content-Type", "application/json")
    if bearer is not None:
        req.add_header("Authorization", "Bearer " + bearer)
    for k, v in headers:
        req.add_header(k, v)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(req, timeout=PATIENCE) as r:
            return r.status, r.headers, r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


def get(path, bearer):
    status, _, body = call("GET", path, bearer=bearer)
    return status, json.loads(body)


def start(bearer, files, agent=None, allowed=None, checks=None, **more):
    body = {
        "instruction": "test",
        "files": [{"path": p, "content": c} for p, c in files.items()],
        "allowedPaths": allowed or list(files),
        "checks": checks or [["python3", "-m", "unittest", "discover"]],
        **more,
    }
    if agent:
        body["agent"] = agent
    status, _, answer = call("POST", "/v1/runs", body, bearer)
    if status != 202:
        raise AssertionError(f"POST /v1/runs: {status} {answer[:300]!r}")
    return json.loads(answer)["runId"]


TERMINAL = ("completed", "failed", "cancelled")


def until(bearer, run, want=lambda v: v["status"] in TERMINAL, seconds=2 * PATIENCE):
    """The first snapshot that satisfies want."""
    seen = {}

    def there():
        status, seen["last"] = get("/v1/runs/" + run, bearer)
        return status == 200 and want(seen["last"])

    if not wait_for(there, seconds, 0.1):
        raise AssertionError(f"run {run} did not get there: {seen['last']}")
    return seen["last"]


def artifact(bearer, run, name):
    status, headers, body = call("GET", f"/v1/runs/{run}/artifacts/{name}", bearer=bearer)
    assert status == 200, (name, status, body[:200])
    return body.decode("utf-8", "replace")


def events(bearer, run):
    status, _, body = call("GET", f"/v1/runs/{run}/events", bearer=bearer)
    assert status == 200, (status, body[:200])
    return [json.loads(line) for line in body.decode().splitlines()]


def check(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
        print("ok", what)
    else:
        failed += 1
        print("FAIL", what, detail)


def case(what, f):
    """Runs f; an exception is a failure of this case alone."""
    try:
        f()
    except Exception as e:
        check(what, False, f"{type(e).__name__}: {e}")


def done():
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
