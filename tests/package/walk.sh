# Sourced by guest.sh, where a fresh Debian has the package and nothing else was done: the administrator's guide, all of it, from
# setup to the first run of a tenant behind Apache, in ten minutes since apt began ($start); then its other boxes ("```sh NAME"), and
# what a second tenant can learn of the first. Ends as it began: nothing is set up.
# shellcheck shell=bash disable=SC2154
walk_start=$start
ok "the guide, from its setup to its first run" /root/tests/source/debian/tests/smoke "$guide"
ok "which printed its patch" grep -q '^ *+ *return a + b' /root/said
walk_took=$((SECONDS - walk_start))
echo "# from the package to the end of the first run: $walk_took s"
# An emulated processor is no measure.
[ "$(systemd-detect-virt)" = qemu ] || ok "in ten minutes" test $walk_took -lt 600
ok "the guide's doctor" bash -e /root/block.6
cp /root/said /root/doctor
ok "it finds nothing that does not work" not grep -E '^error ' /root/doctor
ok "it says that nobody has a device" grep -qE '^warn +devices ' /root/doctor

awk '/^```sh [a-z]+$/ { f = "/root/box." $2; next } /^```$/ { f = ""; next } f { print >f }' "$guide"
ok "a second tenant" bash -e /root/box.tenant
ok "a host of its own" bash -e /root/box.bound
echo 127.0.0.1 acme.example.org pinfold.example.org >>/etc/hosts
ok "where its token is taken" pinfold --server http://acme.example.org --token-file /root/acme-token ps
ok "and that of the first is not" not pinfold --server http://acme.example.org --token-file /root/pinfold-token ps
ok "for that reason" grep -q tenant_mismatch /root/said
ok "doctor says whose host it is" bash -c "pinfold --server http://acme.example.org doctor --no-box | grep -E '^ok +web.tenant .*acme.s alone'"
ok "a certificate" openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=pinfold.example.org -addext subjectAltName=DNS:pinfold.example.org -days 2 \
	-keyout /etc/ssl/private/pinfold.key -out /etc/ssl/certs/pinfold.pem
ok "https" bash -e /root/box.https
ok "ready" wait_until curl -sS --fail --cacert /etc/ssl/certs/pinfold.pem -o /dev/null https://pinfold.example.org/readyz
ok "the command, by https" env PINFOLD_CA_FILE=/etc/ssl/certs/pinfold.pem pinfold --server https://pinfold.example.org --token-file /root/acme-token ps

# Of each address that names a run: the first tenant's own run, asked by the second, is the same as no run.
walk_run=$(cli /root/pinfold-token --json ps | ids_of | tail -n 1)
cp /root/acme-token /root/acme-token-before
ok "its device" bash -c 'code=$(pinfold --json device pair --tenant acme | grep -oE "\"code\":\"[^\"]*" | cut -d\" -f4) &&
	curl -sS --fail -H "Content-Type: application/json" -d "{\"code\":\"$code\",\"label\":\"acme\"}" http://127.0.0.1/v1/pair | grep -oE "pfd_[A-Za-z0-9_-]+" >/root/acme-device'
cat >/root/strangers.py <<'P'
import json, sys, urllib.error, urllib.request
run, api, device = sys.argv[1], open("/root/acme-token").read().strip(), open("/root/acme-device").read().strip()
def ask(method, path, token):
    r = urllib.request.Request("http://127.0.0.1" + path, method=method, data=b'{"decision":"deny"}' if method == "POST" else None)
    r.add_header("Content-Type", "application/json")
    if token:
        r.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(r) as a:
            return a.status, json.load(a)
    except urllib.error.HTTPError as e:
        return e.code, {k: v for k, v in json.load(e).items() if k != "requestId"}
spec = json.load(urllib.request.urlopen("http://127.0.0.1/openapi.json"))
asked = 0
for path, methods in spec["paths"].items():
    if "{runId}" not in path:
        continue
    of = path.replace("{requestId}", "x").replace("{name}", "patch")
    for method in (m.upper() for m in methods if m in ("get", "post", "delete", "put")):
        seen = [ask(method, of.replace("{runId}", i), t) for t in (api, device) for i in (run, "00000000-0000-4000-8000-000000000000")]
        none = ask(method, of.replace("{runId}", run), None)
        asked += 1
        print(method, path, [s for s, _ in seen], none[0])
        # What a kind of token may not do at all is refused whatever it names: 403, for both alike.
        if seen[0] != seen[1] or seen[2] != seen[3] or none[0] != 401 or 404 not in (seen[0][0], seen[2][0]) or {s for s, _ in seen} - {404, 403}:
            sys.exit(f"{method} {path}: {seen} {none}")
sys.exit(asked < 8)
P
ok "each address of a run" python3 /root/strangers.py "$walk_run"
sed 's/^/# /' /root/said
ok "which is as it was" field_is /root/pinfold-token "$walk_run" status completed

# The guide to looking after it, in an order in which each finds what it needs.
awk '/^```sh [a-z]+$/ { f = "/root/op." $2; next } /^```$/ { f = ""; next } f { print >f }' "$(dirname "$guide")/operations.md"
for box in logs backup rotate restore leak secret; do
	ok "docs/operations.md: $box" bash -e /root/op.$box
done
ok "no box of it was left out" test "$(find /root -name 'op.*' | wc -l)" = 6
ok "what was rotated stays so" not cli /root/acme-token-before ps
ok "and the newest is taken" cli /root/acme-token ps

systemctl stop apache2
for server in lighttpd nginx; do
	ok "the same behind $server" bash -e /root/box.$server
	rm -rf /tmp/calc
	ok "a run behind it" bash -e /root/block.5
	ok "doctor" bash -e /root/block.6
	ok "nothing is wrong with it" not grep -E '^(error|warn) +web\.' /root/said
	systemctl stop $server
done
systemctl disable --now lighttpd nginx
rm -rf /etc/nginx/sites-*/pinfold /etc/lighttpd/conf-*/90-pinfold.conf /etc/ssl/certs/pinfold.pem /etc/ssl/private/pinfold.key /etc/apache2/sites-*/pinfold*
sed -i '/acme.example.org/d' /etc/hosts
systemctl stop pinfold-canned
rm -rf /tmp/calc /root/pinfold-token /root/acme-token* /root/acme-device /var/backups/pinfold*
