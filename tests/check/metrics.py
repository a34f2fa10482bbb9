#!/usr/bin/python3
"""The alert rules and the dashboard of etc/monitoring name figures and labels that spec/metrics.tab has, and the tool of
Prometheus takes the rules where it is installed."""
import json, os, re, shutil, subprocess, sys

os.chdir(os.environ.get("srcdir", os.path.dirname(os.path.abspath(__file__)) + "/../.."))
passed = failed = 0


def check(what, ok, *seen):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", what, *seen)


ROWS = {r[0]: r for r in (l.rstrip("\n").split("\t") for l in open("spec/metrics.tab")) if len(r) == 5 and not r[0].startswith("#")}
SERIES, TOLD = {}, {"job", "instance"}
for name, kind, _, labels, _ in ROWS.values():
    has = set() if labels == "-" else set(labels.split(","))
    for end in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
        SERIES[name + end] = has | ({"le"} if end == "_bucket" else set())


def look(where, text, some_series=True):
    """An expression: every series and label in it exists, and a counter or bucket is only looked at by its growth."""
    names = re.findall(r"\b(pinfold_\w+)(?:\{([^}]*)\})?", text)
    check(f"{where}: it is about our figures", names or not some_series, text)
    known = set().union(*(SERIES.get(n, set()) for n, _ in names)) if names else TOLD
    for n, selector in names:
        check(f"{where}: {n} exists", n in SERIES)
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            check(f"{where}: {n} has the label {label}", label in SERIES.get(n, ()))
        if n.endswith(("_total", "_bucket", "_sum", "_count")):
            check(f"{where}: {n} is looked at by its growth", re.search(r"\b(rate|increase)\(" + n, text), text)
    for group in re.findall(r"\bby\s*\(([^)]*)\)", text):
        check(f"{where}: grouped by labels there are", set(re.split(r",\s*", group)) <= known, group, known)
    check(f"{where}: brackets", text.count("(") == text.count(")") and text.count("{") == text.count("}"), text)


def rules(path):
    """Each alert's expression and text, without a reader of YAML: the file keeps to a few forms, which is checked."""
    alerts, lines = [], open(path).read().split("\n")
    for i, l in enumerate(lines):
        m = re.fullmatch(r"      - alert: (\w+)", l)
        if m:
            alerts.append([m[1], "", ""])
        m = re.fullmatch(r"        expr: (.*)", l)
        if m:
            alerts[-1][1] = lines[i + 1].strip() if m[1] == ">-" else m[1]
        m = re.fullmatch(r'          summary: "(.*)"', l)
        if m:
            alerts[-1][2] = m[1]
        check(f"{path}:{i + 1}: a form that is known", not l or re.fullmatch(
            r"#.*|groups:|  - name: \w+|    rules:|      - alert: \w+|        (expr: .+|for: \d+[mh]|labels: \{severity: (page|warn|info)\}|annotations:)"
            r"|          (histogram_quantile\(.*|summary: \"[^\"]+\.\"|summary: \"[^\"]+ now\.\")", l), l)
    return alerts


found = rules("etc/monitoring/pinfold.rules.yml")
check("alerts have names of their own", len({a[0] for a in found}) == len(found) > 8)
for name, expression, summary in found:
    look(name, expression, name != "PinfoldUnreachable")
    check(f"{name} says something", len(summary) > 20 and len(expression) > 5)
    for label in re.findall(r"\$labels\.(\w+)", summary):
        check(f"{name}: its text's label {label}", any(label in SERIES.get(n, ()) for n in re.findall(r"pinfold_\w+", expression)))
board = json.load(open("etc/monitoring/grafana.json"))
check("panels", len({p["id"] for p in board["panels"]}) == len(board["panels"]) > 8)
for p in board["panels"]:
    for t in p["targets"]:
        look(f"panel {p['title']}", t["expr"])
text = open("etc/monitoring/grafana.json").read() + open("etc/monitoring/pinfold.rules.yml").read()
for name in ROWS:
    check(f"docs/metrics.md has {name}", f"`{name}`" in open("docs/metrics.md").read())
tool = shutil.which("promtool")
if tool:
    p = subprocess.run([tool, "check", "rules", "etc/monitoring/pinfold.rules.yml"], capture_output=True, text=True)
    check("promtool takes the rules", p.returncode == 0, p.stdout, p.stderr)
else:
    print("skipped: promtool is not installed (Debian's package prometheus)")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
