#!/usr/bin/python3
"""pinfold doctor: a healthy instance has no error, nor has any of the web servers by its example. No output ever holds a secret or
a control byte. What is said of what is wrong: t_misconfigured.py."""
from doctoring import *
from front import Front


# --- an instance that is well ---------------------------------------------------------------------------------------------

def runs():
    return [r["runId"] for r in get("/v1/runs?limit=100", token())[1]["runs"]]


def healthy():
    before = runs()
    status, rows = doctor(server=URL)
    check("a healthy instance has no error", status == 0, [c for c in rows.values() if c["status"] == "error"])
    walls = {i: c for i, c in rows.items() if i.startswith("wall.")}
    listed = subprocess.run([CLI, "doctor", "--list"], capture_output=True, text=True).stdout.splitlines()
    check("every check that is listed is there", sorted(x.split()[0] for x in listed) == sorted(rows), listed)
    check("a real box was looked at", rows["box.start"]["status"] == "ok" and rows["box.end"]["status"] == "ok", rows["box.start"])
    unseen = {i for i, c in walls.items() if c["status"] != "ok"}
    check("its walls are seen to stand", len(walls) >= 27 and unseen <= {
        "wall.oom-group", "wall.landlock", "wall.landlock-truncate", "wall.landlock-ioctl", "wall.landlock-scopes",
        "wall.core-scheduling", "wall.death-signal"}, {i: walls[i] for i in unseen})
    check("nothing of the run is left", runs() == before)
    mine = [json.loads(x) for x in operator("--json", "token", "list").splitlines()]
    mine = [t for t in mine if t["label"] == "pinfold doctor"]
    check("its token is revoked", mine and all(t["state"] == "revoked" for t in mine), mine)
    text = subprocess.run([CLI, "doctor", "--no-box"], env={**os.environ, "PINFOLD_ROOT": INSTANCE}, capture_output=True)
    said.append(text.stdout + text.stderr)
    check("as a table", text.returncode == 0 and b"0 errors" in text.stdout and b"\nok       config.files " in text.stdout, text)
    check("wrong use", subprocess.run([CLI, "doctor", "--what"], capture_output=True).returncode == 2)


# --- and a root without a service -----------------------------------------------------------------------------------------

def offline(r):
    rows = doctor(r.root)[1]
    check("the rest is skipped, with a word", all(rows[i]["status"] == "skipped" for i in (
        "service.processes", "web.server", "box.start", "tokens", "devices", "files.run")), rows)
    check("push is off", rows["push.sink"]["status"] == "ok" and "off" in rows["push.sink"]["detail"], rows["push.sink"])
    check("the web server's group is right", rows["web.group"]["status"] == "ok", rows["web.group"])
    with Changed(r.conf):
        add(r.conf, 'push_contact = "mailto:ops@example.org"')
        c = doctor(r.root)[1]["push.sink"]
        check("push is set up", c["status"] == "ok" and "43 bytes" in c["detail"] and "5 push services" in c["detail"], c)


def stored(r):
    """A store that is whole, and then not: that of the instance, restored here, without its logs."""
    operator("store", "backup", r.root + "/backup")
    shutil.rmtree(r.store)
    subprocess.run([CLI, "store", "restore", r.root + "/backup"], env=r.env, check=True, capture_output=True)
    os.chmod(r.store, 0o700)
    os.chown(r.store, r.UID, r.UID)
    rows = doctor(r.root)[1]
    check("a store without its service is looked at", rows["store.records"]["status"] == "ok", rows["store.records"])
    check("and its folder is right", rows["files.state"]["status"] == "ok", rows["files.state"])
    for name in os.listdir(r.store):
        if name.startswith("log."):
            os.remove(f"{r.store}/{name}")
    named("a store without its logs", doctor(r.root)[1], "store.records", "error", "", "restore the last backup")


def fronts():
    for name in ("apache", "nginx", "lighttpd"):
        with Front(name) as f:
            status, rows = doctor(server=f.url, words=("--no-box",))
            wrong = [c for c in rows.values() if c["id"].startswith("web.") and c["status"] not in ("ok", "skipped")]
            check(f"nothing is wrong with {name} by its example", status == 0 and not wrong, wrong)


with Ill() as R:
    case("healthy", healthy)
    case("offline", lambda: offline(R))
    case("stored", lambda: stored(R))
    case("fronts", fronts)
    case("secrets", lambda: no_secret_was_said(R.root))
done()
