#!/usr/bin/python3 -B
"""Every row of every table in spec/, broken in every way a row of its kind can be: does anything notice?

usage: mutate.py [--how] [WORD...]    WORD: only changes of tables, or of rows, that hold one of the words

Asks what is quickest first and stops when something notices; --how asks every test, to tell what only promised.tab
sees from what shows in what the code does.

A number is raised by one, a principal, a role or a state is taken away or let in, a flag turned, a code, a status, a
type, a cell made another that could stand there, a name another, a row left out. Noticed is what a generator refuses,
what no longer compiles, what makes a test fail, or what makes docs/ stale. Those tests are made for this (see
tests/vectors/promised.tab): only they are linked again, without optimisation, from what the change touches.
Works in a temporary folder, changes nothing in the tree, needs no configure. As root it also asks a real store.
"""
import collections, concurrent.futures, filecmp, os, shutil, signal, subprocess, sys, tempfile

TOP = os.path.realpath(os.path.dirname(os.path.abspath(__file__)) + "/../..")
os.chdir(TOP)
# tcc, where it is installed, compiles thirty times as fast: for t_promises alone, which only asks tables. What it refuses
# gcc decides.
QUICK = ["tcc", "-Werror", "-Wimplicit-function-declaration"] if shutil.which("tcc") else None
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE"] + [f"-D{d}=\"\"" for d in (
    "RUNNER_PATH", "UNPACK_PATH", "PF_SYSCONFDIR", "PF_STATEDIR", "PF_LOGDIR", "PF_RUNDIR", "PF_LIBEXECDIR", "PF_DATADIR")]
LINK = ["gcc", "-no-pie"] + ["-fuse-ld=gold"] * (shutil.which("ld.gold") is not None)
LIBS = ["-lcmocka", "-lyajl", "-lcrypto", "-ldb", "-lunistring", "-lidn2"]
# attacks.tab says what is tried on a running service: tests/check/walls.py holds each of its rows against an opened wall.
# conf.tab is what the reader goes by: tests/cli/t_setup.sh asks that.
SPEC = {t: f"spec/{t}" for t in os.listdir("spec") if t.endswith((".tab", ".msg", ".rec", ".fsm")) and t not in ("attacks.tab", "conf.tab")}
API = ["errors.tab", "routes.tab", "schema.tab", "limits.tab", "reasons.tab", "responses.tab"]

HOW = "--how" in sys.argv

# What is generated: file -> (generator, out=, tables in order, base=).
GEN = {}
for stem, table in (("store_msg", "store.msg"), ("sandbox_msg", "sandbox.msg"), ("bundle_msg", "bundle.msg"),
                    ("conf_msg", "conf.msg"), ("records", "records.rec")):
    for out, name in (("h", ".h"), ("c", ".c"), ("test.c", "_test.c"), ("on.h", "_on.h"), ("on.c", "_on.c"), ("fuzz.c", "_fuzz.c")):
        if stem in ("store_msg", "sandbox_msg") or "on" not in out and out != "fuzz.c":
            GEN[f"gen/{stem}{name}"] = ("msg", out, [table], f"gen/{stem}")
for prog, stem, outs, tables in (
        ("errors", "errors", "h c", API[:1]), ("fsm", "run_fsm", "h c", ["errors.tab", "run.fsm"]), ("fsm", "course_fsm", "h c", ["errors.tab", "course.fsm"]),
        ("fsm", "approval_fsm", "h c", ["errors.tab", "approval.fsm"]),
        ("fsm", "sandbox_fsm", "h c", ["errors.tab", "sandbox.fsm"]), ("reasons", "reasons", "h c", ["reasons.tab"]), ("metrics", "metrics", "h c", ["metrics.tab"]), ("text", "text", "h", ["text.tab"]), ("audit", "audit", "h c", ["audit.tab"]),
        ("walls", "walls", "h c", ["walls.tab"]), ("seccomp", "seccomp", "h", ["seccomp.tab"]),
        ("schema", "schema", "h c", ["errors.tab", "schema.tab"]), ("limits", "limits", "h", ["routes.tab", "schema.tab", "limits.tab"]),
        ("fields", "fields", "h c", ["fields.tab"]), ("conf", "conf_tab", "h c", ["conf.msg", "conf.tab"])):
    for out in outs.split():
        GEN[f"gen/{stem}.{out}"] = (prog, out, tables, None)
for out, name in (("h", "routes.h"), ("public", "routes_public.c"), ("internal", "routes_internal.c"), ("stub", "routes_stub.c")):
    GEN[f"gen/{name}"] = ("routes", out, ["routes.tab"], None)
for out in ("box", "roles"):
    GEN[f"gen/seccomp_{out}.c"] = ("seccomp", out, ["seccomp.tab"], None)
DOCS = {"docs/errors.md": ("errors", "md", API[:1], None), "docs/metrics.md": ("metrics", "md", ["metrics.tab"], None), "docs/api.md": ("openapi", "md", API, None)}
# Each is a part of docs/walls.md and begins with how many rows it has.
PARTS = {f"docs/{t}.part": (t, "md", [f"{t}.tab"], None) for t in ("walls", "seccomp")}

CODECS = [f"gen/{s}_test.c" for s in ("store_msg", "sandbox_msg", "bundle_msg", "conf_msg", "records")]
STORE = sorted(f"store/{f}" for f in os.listdir("store") if f.endswith(".c")) + ["gen/store_msg_on.c"]
PROGRAMS = {  # name -> (sources, options of the linker, is it behaviour?)
    "t_promises": (["tests/unit/t_promises.c", "tests/unit/promised.c", "gen/routes_stub.c", "gen/routes_internal.c", "gen/fields.c"] + CODECS, [], False),
    "t_frames": (["tests/unit/t_frames.c", "tests/unit/promised.c"] + CODECS +
                 [f"gen/{s}_msg_{k}.c" for s in ("store", "sandbox") for k in ("on", "fuzz")], [], True),
    "t_gates": (["tests/unit/t_gates.c", "tests/unit/promised.c", "gen/routes_stub.c", "gen/routes_internal.c"],
                ["-Wl,--wrap=st_call_principal,--wrap=st_call_audit_note"], True),
    "t_bounds": (["tests/unit/t_bounds.c", "tests/unit/promised.c"], [], True),
    "t_limits": (["tests/unit/t_limits.c", "tests/unit/promised.c"], [], True),
    "t_store_rows": (["tests/store/t_store_rows.c", "tests/unit/promised.c", "tests/store/harness.c", "tests/store/steps.c",
                      "gen/store_msg_test.c"], [], True),
    "t_filter": (["tests/unit/t_filter.c"], [], True),
    "t_text": (["tests/unit/t_text.c"], [], True),
    "t_text_mask": (["tests/unit/t_text_mask.c"], [], True),
    "t_text_vectors": (["tests/unit/t_text_vectors.c", "gateway/agent_text.c"], [], True),
    "t_policy": (["tests/unit/t_policy.c", "tests/unit/model_oracle.c", "gateway/policy.c", "gateway/policy_words.c", "gateway/denied.c", "gateway/policy_strict.c", "gateway/format.c",
                  "gen/fields.c"], [], True),
    "pinfold-stored": (STORE, [], None),
}
USES = {"errors.tab": ["t_promises", "t_gates"], "routes.tab": ["t_promises", "t_gates"], "schema.tab": ["t_promises", "t_bounds"],
        "limits.tab": ["t_promises", "t_limits"], "run.fsm": ["t_promises", "t_store_rows"], "course.fsm": ["t_promises", "t_store_rows"],
        "approval.fsm": ["t_promises"],
        "sandbox.fsm": ["t_promises"], "reasons.tab": ["t_promises", "t_store_rows"], "audit.tab": ["t_promises", "t_store_rows"],
        "responses.tab": [], "walls.tab": ["t_promises"], "text.tab": ["t_promises", "t_text", "t_text_mask", "t_text_vectors"], "seccomp.tab": ["t_filter"], "fields.tab": ["t_promises", "t_policy"]}
for table in SPEC:
    USES.setdefault(table, ["t_promises", "t_frames"])
USES = {t: [p for p in programs if os.path.exists(PROGRAMS[p][0][0])] for t, programs in USES.items()}
if os.geteuid() != 0:
    USES = {t: [p for p in programs if p != "t_store_rows"] for t, programs in USES.items()}


# --- the changes -------------------------------------------------------------------------------------------------
def rows_of(table):
    """Number and text without its comment of each row."""
    for i, line in enumerate(open(SPEC[table]).read().split("\n")):
        text = line.split("#")[0].rstrip() if not table.endswith(".tab") else "" if line.startswith("#") else line
        if text.strip():
            yield i, text


def lists(have, all_, none=None):
    """A comma-separated list with each word taken away, or let in."""
    have = [] if have == none else have.split(",")
    out = [[w for w in have if w != x] for x in have] + [[w for w in all_ if w in have + [x]] for x in all_ if x not in have]
    out += [[x] for x in all_ if len(have) == 1 and x not in have]
    return [",".join(o) for o in out if o] + ([none] if none and len(have) == 1 else [])


def cells(text, choices, join="\t"):
    """Each choice of column -> other values, as a row."""
    words = text.split("\t") if join == "\t" else text.split()
    for column, others in choices.items():
        for other in others:
            if other != words[column]:
                yield join.join(words[:column] + [str(other)] + words[column + 1:])


def near(word, none=None):
    """Another number; where there is none, one."""
    if word == none:
        return ["1"]
    return [str(int(word) + 1)] + ([str(int(word) - 1)] if int(word) > 1 else [])


def free(table, column, separator, most=999):
    """A number of its kind that no row has."""
    used = {t.split(separator)[column] for _, t in rows_of(table) if len(t.split(separator)) > column}
    return next(str(n) for n in range(most, 0, -1) if str(n) not in used)


TYPES = {"u8": "u16", "u16": "u32", "u32": "u64", "u64": "u32", "i32": "u32", "bool": "u8", "id": "str 128", "str": "bytes", "bytes": "str",
         "strs": "strs"}


def of_messages(table):
    rows = list(rows_of(table))
    roles = [t.split()[1] for _, t in rows if t.startswith("role ")]
    states = [t.split()[1] for _, t in rows if t.startswith("state ")]
    names = [t.split()[1] for _, t in rows if t.startswith("msg ")]
    for i, text in rows:
        w = text.split()
        yield i, None
        if w[0] == "protocol":
            yield from ((i, t) for t in cells(text, {2: near(w[2]), 3: near(w[3])}, " "))
        elif w[0] in ("role", "state", "struct"):
            yield i, text + "x"
        elif w[0] == "record":
            yield from ((i, t) for t in cells(text, {1: [w[1] + "x"], 2: near(w[2])}, " "))
        elif w[0] == "key":
            for k in range(1, len(w)):
                yield i, " ".join(w[:k] + w[k + 1:]) if len(w) > 2 else "key other"
                yield i, " ".join(w[:k] + ["other"] + w[k:])
                yield i, " ".join(w[:k] + [w[k].replace(":u64", "") if ":" in w[k] else w[k] + ":u64"] + w[k + 1:])
        elif w[0] == "msg":
            number = {1: [w[1] + "X"], 2: [free(table, 2, " ", 9999)]}
            if w[3] == "up":
                fds = int(w[7][4:])
                number.update({4: lists(w[4], roles), 5: lists(w[5], states), 6: states, 7: [f"fds={fds + 1}"] + ([f"fds={fds - 1}"] if fds else [])})
                yield i, " ".join(w[:3] + ["down", w[7]])
                yield i, text.replace(" once", "") if " once" in text else " ".join(w[:8] + ["once"] + w[8:])
                for k, word in enumerate(w):
                    if word.startswith("reply="):
                        yield i, " ".join(w[:k] + w[k + 1:])
                        yield i, " ".join(w[:k] + ["reply=" + next(n for n in names if "reply=" + n != word)])
            else:
                fds = int(w[4][4:])
                number.update({4: [f"fds={fds + 1}"] + ([f"fds={fds - 1}"] if fds else [])})
                if roles:
                    yield i, f"{w[0]} {w[1]} {w[2]} up {roles[0]} {states[0]} {states[0]} {w[4]}"
            yield from ((i, t) for t in cells(text, number, " "))
        else:
            columns = {1: [w[1] + "_x"]}
            columns.update({k: near(w[k]) if w[k].isdigit() else ["", "since=" + str(int(w[k][6:]) + 1)] for k in range(2, len(w))})
            yield from ((i, "  " + t) for t in cells(text, columns, " "))
            if w[0] != "strs":
                yield i, " ".join([TYPES[w[0]]] + w[1:]) if w[0] not in ("id",) else f"str {w[1]} 128"


def of_machine(table):
    rows = list(rows_of(table))
    states = next(t.split()[1:] for _, t in rows if t.startswith("states"))
    for i, text in rows:
        w = text.split()
        yield i, None
        if w[0] in ("states", "events"):
            yield from ((i, t) for t in cells(text, {k: [w[k] + "x"] for k in range(1, len(w))}, " "))
        elif w[0] == "public":
            yield from ((i, t) for t in cells(text, {k: sorted(set(w[1:])) for k in range(1, len(w))}, " "))
        elif w[0] == "home":
            yield from ((i, "home " + s) for s in states if s != w[1])
        elif w[0] == "final":
            yield from ((i, "final " + t.replace(",", " ")) for t in lists(",".join(w[1:]), states))
        elif w[0] in states:
            other = ["keep"] + ["go:" + s for s in states] + ["refuse:illegal_run_transition", "refuse:internal_error"]
            yield from ((i, t) for t in cells(text, {k: other for k in range(1, len(w))}, " "))


def of_errors(table):
    status = ["400", "401", "403", "404", "405", "409", "413", "415", "429", "500", "503"]
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        where = status.index(w[2]) if w[2] in status else 0
        yield from ((i, t) for t in cells(text, {0: [free(table, 0, "\t")], 1: [w[1] + "x", "dropped"], 2: [status[where - 1], status[(where + 1) % len(status)]],
                                                 3: ["yes", "no"], 4: [w[4] + " More."]}))


def of_routes(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        handlers = [t.split("\t")[8] for _, t in rows_of(table) if t.startswith(w[0])]
        yield from ((i, t) for t in cells(text, {
            0: ["public", "internal"], 1: ["GET", "POST", "PUT", "DELETE"], 2: [w[2] + "x", w[2] + "/x"],
            3: lists(w[3], ["none", "api", "device", "run"]) + ["none", "api,device"], 4: ["-", "model", "events", "approvals"],
            5: near(w[5]) if w[5] != "0" else [], 6: ["-", "any", "application/json"] if w[6] != "-" else [],
            7: ["-", "approve", "metrics", "approve,metrics"], 8: [h for h in handlers if h != w[8]][:2]}))
        if w[5] == "0":
            for kind in ("any", "application/json"):
                yield i, "\t".join(w[:5] + ["8192", kind] + w[7:])
        else:
            yield i, "\t".join(w[:5] + ["0", "-"] + w[7:])


def of_bodies(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        yield from ((i, t) for t in cells(text, {
            1: [w[1] + "x"], 2: ["string", "object", "array", "integer", "bool", "any", "map"], 3: ["yes", "no"], 4: near(w[4], "-") + ["-"],
            5: near(w[5], "-") + ["-"], 6: near(w[6], "-") + ["-"], 7: ["invalid_request", "internal_error"]}))
        if len(w) == 9:
            yield i, "\t".join(w[:8])
            yield i, "\t".join(w[:8] + ["invalid_request"])
        elif w[6] != "-":
            yield i, text + "\trequest_too_large"


def of_fields(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        plain = ["text", "number", "bool", "any", "data", "url", "blob", "effort", "strip", "reject"]
        yield from ((i, t) for t in cells(text, {
            2: [",".join(f for f in w[2].split(",") if f != x) for x in w[2].split(",") if "," in w[2]],
            3: [a for a in plain if a != w[3]] if w[4] == "-" and w[3] != "-" else []}))


def of_limits(table):
    rows = list(rows_of(table))
    for i, text in rows:
        w = text.split("\t")
        yield i, None
        other = next(t.split("\t")[2] for _, t in rows if t.split("\t")[2].split(":")[0] == w[2].split(":")[0] and t.split("\t")[2] != w[2]) \
            if ":" in w[2] else None
        values = near(w[2]) if other is None else [other, "1"]
        yield from ((i, t) for t in cells(text, {0: [w[0] + "x"], 1: [w[1] + "x"], 2: values, 3: ["things"], 4: [w[4] + " More."]}))


def of_audit(table):
    fields = [t.split("\t")[1] for _, t in rows_of(table) if t.startswith("field")]
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        if w[0] == "field":
            yield from ((i, t) for t in cells(text, {1: [w[1] + "x"], 2: ["str", "int"], 3: ["keep", "redact"]}))
            continue
        more = [f for f in fields if f not in w[6].split(",")][-1:]
        yield from ((i, t) for t in cells(text, {
            1: [free(table, 1, "\t", 250)], 2: [w[2] + "x"], 3: ["commit", "note"], 4: ["required", "optional"],
            5: ["stored"] + lists(w[5], ["fcgi", "gateway", "steward"]),
            6: [",".join(f for f in w[6].split(",") if f != x) or "-" for x in w[6].split(",")] +
               [(w[6] + "," if w[6] != "-" else "") + m for m in more]}))


def of_reasons(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        yield from ((i, t) for t in cells(text, {0: [w[0] + "x"], 1: ["completed", "failed", "cancelled"], 2: ["More. " + w[2]]}))


def of_text(table):
    """A sentence that says why is told to nobody but the reader of the table."""
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        if w[0] == "mask":
            yield from ((i, t) for t in cells(text, {1: ["prefix", "parts", "name"], 2: [w[2] + ("X" if w[2].isupper() else "x")], 3: ["alnum", "url", "value"], 4: near(w[4])}))
            continue
        what = {"take": 2, "keep": 2, "blank": 1}.get(w[0])
        if what is None:
            yield from ((i, t) for t in cells(text, {1: [w[1] + "x"], 2: ["line", "body"], 3: near(w[3]), 4: ["any", "question", "-"]}))
            continue
        part = w[what].split(",")
        less = [",".join(part[:k] + part[k + 1:]) for k in range(len(part)) if len(part) > 1]
        yield from ((i, t) for t in cells(text, {what: less + [w[what] + ",3042" if w[what][0] != "p" else "property dash"]}))
        if w[0] == "take":
            yield from ((i, t) for t in cells(text, {1: ["all", "line"]}))


def of_answers(table):
    types = ["string", "integer", "number", "boolean", "map", "any", "time"]
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        if w[0] == "about":
            yield i, text + " More."
        elif w[0] in ("query", "header"):
            yield from ((i, t) for t in cells(text, {2: [w[2] + "x"], 3: types + ["string:1..9", "integer:1..9", "word:a,b"], 4: [w[4] + " More."]}))
        elif w[0] == "answer":
            yield from ((i, t) for t in cells(text, {2: ["200", "201", "204", "404"], 3: ["-", "text/plain", "application/json"],
                                                     4: ["-", "Error"], 5: ["-", "ETag", "Location", "Retry-After"], 6: [w[6] + " More."]}))
        elif w[0] == "also":
            yield from ((i, t) for t in cells(text, {2: ["201", "204"], 3: ["text/plain", "application/json"], 4: [w[4] + " More."]}))
        elif w[0] == "error":
            codes = w[2].split(",")
            yield from ((i, "\t".join(w[:2] + [",".join(c for c in codes if c != x)])) for x in codes)
            yield i, text + ",tenant_not_found"
        else:
            yield from ((i, t) for t in cells(text, {1: [w[1] + "x"], 2: [w[2] + "x"], 3: types + [w[3] + "?"], 4: ["yes", "no"], 5: [w[5] + " More."]}))


def of_walls(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        # Another id does not compile: sandboxd says each.
        yield from ((i, t) for t in cells(text, {1: [w[1] + "x"], 2: ["-", "5.1"], 3: ["required", "extra"], 4: ["machine", "box"],
                                                 5: ["More. " + w[5]], 6: ["More. " + w[6]]}))


def of_calls(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        words = w[2].split(" ")
        less = [" ".join(words[:k] + words[k + 1:]) for k in range(len(words)) if len(words) > 1]
        other = {"allow": ["refuse"], "refuse": ["allow"]}.get(w[1], ["only", "when"])
        yield from ((i, t) for t in cells(text, {1: other, 2: less + [w[2] + " kcmp"], 3: ["EIO", "-"], 4: ["More. " + w[4]]}))


def of_metrics(table):
    for i, text in rows_of(table):
        w = text.split("\t")
        yield i, None
        less = lists(w[3], [], "-") if w[3] != "-" else []
        yield from ((i, t) for t in cells(text, {
            0: [w[0].replace("pinfold_", "pinfold_x_"), w[0] + "_x", w[0] + "_total"], 1: ["counter", "gauge", "histogram"], 2: ["stored", "fcgi", "steward"],
            3: less + ["code"] + ([w[3] + ",more", w[3] + "x"] if w[3] != "-" else []), 4: ["More. " + w[4]]}))


KIND = {"metrics.tab": of_metrics, "walls.tab": of_walls, "seccomp.tab": of_calls, "errors.tab": of_errors, "routes.tab": of_routes, "schema.tab": of_bodies, "limits.tab": of_limits, "audit.tab": of_audit,
        "responses.tab": of_answers, "reasons.tab": of_reasons, "text.tab": of_text, "fields.tab": of_fields}


def changes(table):
    kind = KIND.get(table) or (of_machine if table.endswith(".fsm") else of_messages)
    seen = set()
    for change in kind(table):
        if change not in seen:
            seen.add(change)
            yield change


# --- one change ----------------------------------------------------------------------------------------------------
WORK = tempfile.mkdtemp(prefix="pinfold-mutate.")
os.chmod(WORK, 0o755)
BASE = WORK + "/base"


def generate(how, folder, out):
    """Why it is refused, or None. A table that folder has is taken from there."""
    prog, kind, tables, base = how
    files = [f"{folder}/spec/{t}" if os.path.exists(f"{folder}/spec/{t}") else f"spec/{t}" for t in tables]
    # The comment in each file names where it is from; where that is does not matter.
    done = subprocess.run(["awk", "-v", f"out={kind}"] + (["-v", f"base={base}"] if base else []) + ["-f", f"tools/gen-{prog}.awk"] + files,
                          stdout=open(out, "w"), stderr=subprocess.PIPE, text=True)
    return done.stderr or f"gen-{prog}.awk failed" if done.returncode else None


def compile_one(source, folder, quick=False):
    obj = f"{folder}/{source[:-2]}.o"
    os.makedirs(os.path.dirname(obj), exist_ok=True)
    where = next(f"{root}/{source}" for root in (folder, BASE, TOP) if os.path.exists(f"{root}/{source}"))
    words = FLAGS + ["-I", folder, "-I", BASE, "-I", TOP, "-MD", "-c", "-o", obj, where]
    if quick and subprocess.run(QUICK + words, stderr=subprocess.DEVNULL).returncode == 0:
        return None
    done = subprocess.run(["gcc", "-O0", "-w", "-no-pie", "-fno-pie"] + words, stderr=subprocess.PIPE, text=True)
    return None if done.returncode == 0 else done.stderr


LIBRARY, HEADERS = [], {}


def link(name, folder, changed):
    sources, options, _ = PROGRAMS[name]
    def obj(source):
        return f"{folder if source in changed else BASE}/{source[:-2]}.o"
    # What the change touched stands in an archive before the other: found first, and taken only where it is needed.
    again = f"{folder}/changed.a"
    touched = [obj(s) for s in changed if s in LIBRARY]
    if touched:
        subprocess.run(["ar", "rcs", again] + touched, check=True)
    done = subprocess.run(LINK + ["-o", f"{folder}/{name}"] + options + [obj(s) for s in sources] + [again] * bool(touched) +
                          [f"{BASE}/all.a"] + LIBS, stderr=subprocess.PIPE, text=True)
    return None if done.returncode == 0 else done.stderr


def needed(programs):
    return {s for p in programs for s in PROGRAMS[p][0]}


def try_change(table, number, text):
    """How it was noticed: refused, compiler, behaviour, promise, documents; "" where it was not."""
    folder = tempfile.mkdtemp(prefix="one.", dir=WORK)
    os.chmod(folder, 0o755)
    try:
        for sub in ("spec", "gen", "docs"):
            os.mkdir(f"{folder}/{sub}")
        lines = open(SPEC[table]).read().split("\n")
        lines[number:number + 1] = [] if text is None else [text]
        open(f"{folder}/spec/{table}", "w").write("\n".join(lines))
        changed = set()
        for out, how in GEN.items():
            if table in how[2]:
                if generate(how, folder, f"{folder}/{out}"):
                    return "refused"
                if filecmp.cmp(f"{folder}/{out}", f"{BASE}/{out}", shallow=False):
                    os.remove(f"{folder}/{out}")
                else:
                    changed.add(out)
        stale = False
        for out, how in DOCS.items():
            if table in how[2]:
                if generate(how, folder, f"{folder}/{out}"):
                    return "refused"
                stale = stale or not filecmp.cmp(f"{folder}/{out}", out, shallow=False)
        for out, how in PARTS.items():
            if table in how[2]:
                if generate(how, folder, f"{folder}/{out}"):
                    return "refused"
                stale = stale or open(f"{folder}/{out}").read() not in open("docs/walls.md").read()
        noticed = {"documents"} if stale else set()
        programs = list(USES[table]) if changed else []
        # Each program by itself, t_promises first, where the first that notices is enough.
        for some in [programs] if HOW else [[p] for p in programs]:
            if noticed and not HOW:
                break
            why = run_tests(folder, some, changed, noticed)
            if why is not None:
                if os.environ.get("MUTATE_WHY"):
                    print(why)
                return "compiler"
        return next((n for n in ("behaviour", "promise", "documents") if n in noticed), "")
    finally:
        shutil.rmtree(folder)


def run_tests(folder, programs, changed, noticed):
    """Compiles what the change touches of these programs, links and runs them. Why that is impossible, or None."""
    if "t_store_rows" in programs:
        programs = programs + ["pinfold-stored"]
    # t_promises only asks generated code: what else includes a changed header need not be made again for it.
    library = set(LIBRARY) if programs != ["t_promises"] else {s for s in LIBRARY if s.startswith("gen/")}
    again = {s for s in needed(programs) | library if s in changed or HEADERS[s] & changed}
    quick = QUICK is not None and programs == ["t_promises"]
    for source in sorted(again, key=lambda s: (not s.startswith("gen/"), s)):
        if (why := compile_one(source, folder, quick)) is not None:
            return why
    for name in reversed(programs):
        if (why := link(name, folder, again)) is not None:
            return why
        if PROGRAMS[name][2] is None:
            continue
        env = dict(os.environ, srcdir=TOP, PINFOLD_STORED=f"{folder}/pinfold-stored")
        try:
            bad = subprocess.run([f"{folder}/{name}"], env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300).returncode
        except subprocess.TimeoutExpired:
            bad = 1
        if bad:
            noticed.add("behaviour" if PROGRAMS[name][2] else "promise")
    return None


def prepare():
    """Everything once, as it is: the tests pass and the documents are fresh."""
    os.mkdir(BASE)
    for sub in ("gen", "docs"):
        os.mkdir(f"{BASE}/{sub}")
    bad = [f"{out}: {why}" for out, how in GEN.items() if (why := generate(how, BASE, f"{BASE}/{out}"))]
    bad += [f"docs/walls.md is not what spec/{t}.tab makes" for t in ("walls", "seccomp")
            if generate(PARTS[f"docs/{t}.part"], BASE, f"{BASE}/docs/{t}.part") or open(f"{BASE}/docs/{t}.part").read() not in open("docs/walls.md").read()]
    bad += [why for why in [generate(("openapi", "json", API, None), BASE, f"{BASE}/gen/openapi.json")] if why]
    for out in "hc":
        subprocess.run(["awk", "-v", f"out={out}", "-f", f"{TOP}/tools/gen-embed.awk", "gen/openapi.json"], cwd=BASE,
                       stdout=open(f"{BASE}/gen/openapi.{out}", "w"))
    LIBRARY.extend(sorted(f"{d}/{f}" for d in ("lib", "handlers") for f in os.listdir(d) if f.endswith(".c")))
    LIBRARY.extend(f for f in list(GEN) + ["gen/openapi.c"] if f.endswith(".c") and not any(f in p[0] for p in PROGRAMS.values()))
    programs = {p for ps in USES.values() for p in ps}
    if "t_store_rows" in programs:
        programs.add("pinfold-stored")
    sources = sorted(needed(programs) | set(LIBRARY))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad += [why for why in pool.map(lambda s: compile_one(s, BASE), sources) if why]
    for s in sources:
        words = open(f"{BASE}/{s[:-2]}.d").read().replace("\\\n", " ").split()
        HEADERS[s] = {"gen/" + w.split("/gen/")[1] for w in words if "/gen/" in w}
    subprocess.run(["ar", "rcs", f"{BASE}/all.a"] + [f"{BASE}/{s[:-2]}.o" for s in LIBRARY], check=True)
    for name in sorted(programs):
        bad += [why for why in [link(name, BASE, set())] if why]
    for name in sorted(programs - {"pinfold-stored"} if not bad else []):
        done = subprocess.run([f"{BASE}/{name}"], env=dict(os.environ, srcdir=TOP, PINFOLD_STORED=f"{BASE}/pinfold-stored"), cwd=BASE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        bad += [f"{name} fails as it is:\n{done.stdout[-2000:]}"] if done.returncode else []
    if not bad and QUICK is not None:
        bad = [f"t_promises fails with what tcc makes of {t} as it is" for t in SPEC if "t_promises" in USES[t] and not same(t)]
    return bad


def same(table):
    """Nothing is noticed when a table's files are compiled as they are after a change."""
    folder = tempfile.mkdtemp(prefix="one.", dir=WORK)
    os.mkdir(f"{folder}/gen")
    changed = {out for out, how in GEN.items() if table in how[2]}
    for out in changed:
        shutil.copy(f"{BASE}/{out}", f"{folder}/{out}")
    noticed = set()
    why = run_tests(folder, ["t_promises"], changed, noticed)
    shutil.rmtree(folder)
    return why is None and not noticed


def main():
    words = [w for w in sys.argv[1:] if w != "--how"]
    bad = prepare()
    if bad:
        print("\n".join(bad) + "\n0 passed, 1 failed")
        return 1
    holes = total = 0
    kinds = ("refused", "compiler", "behaviour", "promise", "documents", "")
    print("%-14s %7s %7s  %s" % ("table", "rows", "changes", "refused, not compiled, seen by what it does, by promised.tab alone, by docs/ alone; not noticed"
                                 if HOW else "refused, not compiled, seen by what it does, by promised.tab, by docs/; not noticed"))
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("MUTATE_JOBS", os.cpu_count()))) as pool:
        for table in sorted(SPEC):
            every = [(n, t) for n, t in changes(table)]
            lines = open(SPEC[table]).read().split("\n")
            chosen = [(n, t) for n, t in every if not words or any(w in table or w in lines[n] for w in words)]
            if not chosen:
                continue
            how = list(pool.map(lambda c: try_change(table, *c), chosen))
            count = collections.Counter(how)
            for (n, text), h in zip(chosen, how):
                if h == "":
                    print(f"FAIL spec/{table}:{n + 1}: {lines[n].strip()} -> {text}: not noticed")
                elif os.environ.get("MUTATE_SHOW") == h:
                    print(f"{h} spec/{table}:{n + 1}: {lines[n].strip()} -> {text}")
            rows = len({n for n, _ in chosen})
            print("%-14s %7d %7d  %s" % (table, rows, len(chosen), " ".join("%d" % count[k] for k in kinds)), flush=True)
            # A table of which nothing is changed would look like one that is safe.
            holes += count[""] + (not words and rows < len(list(rows_of(table))))
            total += len(chosen)
    print(f"{total - holes} passed, {holes} failed")
    return holes > 0 or total == 0


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    status = main()
finally:
    shutil.rmtree(WORK)
sys.exit(status)
