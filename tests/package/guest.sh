#!/bin/bash
# guest.sh OLD.deb NEW.deb GUIDE: runs as root in the machine that run.sh has made, a fresh Debian with systemd and no network. Follows
# the guide with the older package, upgrades to the newer one beside live data, tries to go back, removes, installs again, purges,
# looks for what is left, and has autopkgtest follow the guide once more. Lines "ok ..." and "FAIL ..."; nothing goes on after a
# failure.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive
old=$1 new=$2 guide=$3
# shellcheck source=tools/lib/wait.sh
. "$(dirname "$0")/wait.sh"
ok() { # ok WHAT COMMAND...
	local what=$1
	shift
	# What the one before said is there while this one runs.
	if "$@" >/root/now 2>&1; then mv /root/now /root/said; echo "ok $what"; return; fi
	echo "FAIL $what"
	mv /root/now /root/said
	tail -n 30 /root/said
	journalctl -b -o cat --no-pager -n 40 -u pinfold
	exit 1
}
not() { ! "$@"; }
none() { if grep . ; then return 1; fi; } # nothing comes in
# Nobody is there to be asked: what was changed is kept, as it is by default.
install() { apt-get install -y -q -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef "$@"; }
go_back() { apt-get remove -y -q pinfold && install "$old"; }
unit_is() { [ "$(systemctl is-enabled pinfold) $(systemctl is-active pinfold)" = "$1" ]; }
ready() { curl -sS --fail -o /dev/null http://127.0.0.1/readyz; }
cli() { pinfold --server http://127.0.0.1 --token-file "$@"; }
field() { cli "$1" --json show "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$3"; }
ids_of() { grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | awk '!seen[$0]++'; }
field_is() { [ "$(field "$1" "$2" "$3")" = "$4" ]; }
holds() { dpkg-deb --fsys-tarfile "$1" | tar -xO "./$2"; } # what a package has as that file
# All that the first has is in the second, at any depth; what a newer form adds is no loss.
no_less() { python3 -c 'import json, sys
def lost(a, b): return any(k not in b or lost(a[k], b[k]) for k in a) if isinstance(a, dict) and isinstance(b, dict) else a != b
sys.exit(lost(*(json.load(open(f)) for f in sys.argv[1:])))' "$@"; }
made() { # made FILE WORD...: a token
	local file=$1
	shift
	(umask 077; pinfold token "$@" >"$file")
}
id_of() { pinfold --json token list | python3 -c 'import json, sys; print(*[t["id"] for t in map(json.loads, sys.stdin) if t["label"] == sys.argv[1]])' "$1"; }
paired() { # paired LABEL FILE: a device, and its token
	local code
	code=$(pinfold --json device pair | python3 -c 'import json, sys; print(json.load(sys.stdin)["code"])') && (umask 077; curl -sS --fail -H 'Content-Type: application/json' \
		-d "{\"code\":\"$code\",\"label\":\"$1\"}" http://127.0.0.1/v1/pair | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])' >"$2")
}
device() { pinfold --server http://127.0.0.1 --device-token-file "$@"; }
purged() { # nothing is left of it
	ok "apt purges it" apt-get purge -y -q pinfold
	ok "no process is left" none < <(ours)
	ok "no file is left" none < <(find / -xdev \( -path /root -o -path /tmp -o -path /var/cache/apt -o -path /var/log/apt -o -path /proc \) -prune -o -name '*pinfold*' \
		! -path '/etc/apache2/*' ! -path '/var/lib/apache2/*' ! -path '/etc/lighttpd/*' -print)
	ok "nothing of it is known to dpkg and systemd" not bash -c 'dpkg-query -s pinfold || systemctl cat pinfold'
	ok "nor any user" none < <(getent passwd | grep pinfold; getent group | grep pinfold; getent shadow | grep pinfold)
	ok "nobody owns what is left" none < <(find / -xdev \( -path /root -o -path /tmp -o -path /proc \) -prune -o \( -nouser -o -nogroup \) -print)
}
as_it_was() { # as_it_was: the run that had ended, and who may call
	ok "what had ended is as it was" field_is $T "$done_id" status completed
	cli $T --json show "$done_id" >/root/show-after
	ok "in all its fields" no_less /root/show-before /root/show-after
	cli $T events "$done_id" >/root/events-after
	ok "its events" cmp /root/events-before /root/events-after
	cli $T artifacts "$done_id" patch >/root/patch-after
	ok "its patch" cmp /root/patch-before /root/patch-after
	ok "a token that is being rotated is valid" cli /root/more-token ps
	ok "in its NEXT form as well" cli /root/more-next ps
	ok "a revoked one is not" not cli /root/gone-token ps
	ok "a paired device is one" device /root/phone-token ps
}
ours() { ps -eo args= | grep -E '^[^ ]*/pinfold-|^pinfold-' | grep -v scripted-model; }

mkdir -p /root/package && cd /root/package || exit 1

# --- installed, not set up
# Each block of the guide between ```sh and ``` is run as it is; the first of them installs.
awk '/^```sh$/ { n++; f = "/root/block." n; next } /^```$/ { f = ""; next } f { print >f }' "$guide"
ok "the guide has its blocks" test -e /root/block.6
cp "$new" .
start=$SECONDS
ok "apt takes the package" bash -e /root/block.1
ok "it says what is left to do" grep -q "pinfold setup" /root/said
ok "it is enabled and does not run" unit_is "enabled inactive"
ok "nothing has failed" test "$(systemctl show -P Result pinfold)" = success
ok "a start without a setup starts nothing" systemctl start pinfold
ok "and is no failure" unit_is "enabled inactive"
ok "no configuration was made" not test -e /etc/pinfold/pinfold.conf
ok "its users are there, locked" bash -c 'for u in pinfold pinfold-store pinfold-gateway pinfold-steward pinfold-push; do
	getent passwd $u | grep -q nologin && getent shadow $u | grep -qE "^$u:!" || exit 1; done'
ok "programs cannot be read by their users" not su -s /bin/cat pinfold-store /usr/libexec/pinfold/pinfold-stored
ok "completion" bash -c '. /usr/share/bash-completion/completions/pinfold && complete -p pinfold'
# shellcheck source=tests/package/walk.sh
. "$(dirname "$0")/walk.sh"
purged

# --- the older one by its own guide, or by ours where it has none
rm -f ./*.deb && cp "$old" "pinfold_0_$(dpkg --print-architecture).deb"
ok "apt takes the older package" bash -e /root/block.1
for own in /usr/share/doc/pinfold/install.md /usr/share/doc/pinfold/install.md.gz; do
	[ ! -e $own ] || zcat -f $own >/root/older.md
done
start=$SECONDS smoke=/root/tests/source/debian/tests/smoke
ok "from the guide's setup to its first run" $smoke "$([ -e /root/older.md ] && echo /root/older.md || echo "$guide")"
ok "which printed its patch" grep -q '^ *+ *return a + b' /root/said
echo "# from setup to the end of the first run: $((SECONDS - start)) s"

# --- live data: one that has ended, one that runs, one that waits
cat >/etc/pinfold/profiles.d/slow.conf <<'C'
agent "slow" {
	command = {"/usr/bin/sleep", "600"}
	memory_mb = 32
}
C
cat >/etc/pinfold/tenants.d/slow.conf <<'C'
tenant "slow" {
	agent = "slow"
	model_profile = "default"
	max_concurrent_runs = 1
}
C
ok "a tenant more" systemctl restart pinfold
ok "ready" wait_until ready
ok "its token" pinfold setup --tenant slow --token-file /root/slow-token
T=/root/pinfold-token S=/root/slow-token
done_id=$(cli $T --json ps | ids_of | tail -n 1)
ok "two runs that take long" bash -c "for n in 1 2; do pinfold --server http://127.0.0.1 --token-file $S --json run --detach -i wait /tmp/calc; done"
mapfile -t ids < <(ids_of </root/said)
ok "each with its id" test ${#ids[@]} = 2
ok "one runs" wait_until field_is $S "${ids[0]}" status running
ok "one waits" field_is $S "${ids[1]}" status queued
ok "a token more" made /root/more-token create --label more
ok "which is being rotated" made /root/more-next rotate "$(id_of more)"
ok "one that is revoked" made /root/gone-token create --label gone
ok "now" pinfold token revoke "$(id_of gone)"
ok "a paired device" paired phone /root/phone-token
cli $T --json show "$done_id" >/root/show-before
cli $T events "$done_id" >/root/events-before
cli $T artifacts "$done_id" patch >/root/patch-before
ok "a backup" pinfold store backup /root/backup
cp -a /etc/pinfold /root/etc-before
echo '# of the administrator' >>/etc/pinfold/web-servers/nginx.conf

# --- upgraded
ok "apt upgrades it" install "$new"
ok "the newer one is there" test "$(dpkg-query -W -f '${Version}' pinfold)" = "$(dpkg-deb -f "$new" Version)"
ok "and runs" unit_is "enabled active"
ok "ready" wait_until ready
as_it_was
ok "what ran has failed" wait_until field_is $S "${ids[0]}" status failed
ok "and says why" field_is $S "${ids[0]}" terminalReason controller_restarted
ok "what waited runs now" wait_until field_is $S "${ids[1]}" status running
ok "configuration and secrets are untouched" diff -r -x web-servers /etc/pinfold /root/etc-before
ok "a changed example stayed" grep -q 'of the administrator' /etc/pinfold/web-servers/nginx.conf
ok "the others are the newer ones" cmp /etc/pinfold/web-servers/apache.conf <(holds "$new" etc/pinfold/web-servers/apache.conf)
ok "the store fits together" pinfold store check --contents
ok "the audit log as well" pinfold audit verify

# --- back to the older one, which cannot read the store any more
old_form=$(holds "$old" usr/share/pinfold/store-form) new_form=$(holds "$new" usr/share/pinfold/store-form)
if [ "${old_form:-0}" -lt "$new_form" ]; then
	ok "the store has the newer form" bash -c "pinfold store stat | grep -qE '^form +$new_form\$'"
	ok "apt does not go back by itself" not install "$old"
	ok "nor where it is told to" not install --allow-downgrades "$old"
	ok "and says why, and what to do" grep -qE "keeps its store in form $old_form and cannot read form $new_form|The way back needs a backup" /root/said
	ok "the newer one is there" test "$(dpkg-query -W -f '${Version} ${db:Status-Status}' pinfold)" = "$(dpkg-deb -f "$new" Version) installed"
	ok "and runs again" wait_until unit_is "enabled active"
	ok "ready" wait_until ready
	as_it_was
	ok "removed, and the older one installed" go_back
	ok "it does not take the store" wait_until bash -c "journalctl -b -o cat --no-pager -u pinfold | grep -q 'the store has form $new_form, and this program knows forms up to $old_form'"
	ok "and serves nobody" not ready
	ok "the newer one takes it back" install "$new"
	ok "ready" wait_until ready
	ok "the store fits together" pinfold store check --contents
	as_it_was
	ok "what ran has failed" field_is $S "${ids[0]}" terminalReason controller_restarted
	ok "the way back that is told: remove, install" go_back
	ok "stop" systemctl stop pinfold
	ok "restore" pinfold store restore /root/backup
	ok "start" systemctl start pinfold
	ok "ready" wait_until ready
	as_it_was
	ok "and up again" install "$new"
	ok "ready" wait_until ready
	as_it_was
	ok "the store fits together" pinfold store check --contents
else
	echo "skipped the way back: both have the same form of the store"
fi
ok "its rotation goes on" pinfold token promote "$(id_of more)"
ok "the NEXT secret is the token" cli /root/more-next ps
ok "the one before is refused" not cli /root/more-token ps

# --- reloaded, started again
pid=$(systemctl show -P MainPID pinfold)
ok "systemctl reload-or-restart" systemctl reload-or-restart pinfold
ok "ready" wait_until ready
[ "$(systemctl show -P CanReload pinfold)" = no ] || ok "it was a reload" test "$pid" = "$(systemctl show -P MainPID pinfold)"
ok "systemctl restart" systemctl restart pinfold
ok "ready" wait_until ready
rm -rf /tmp/calc
ok "the first run again" bash -e /root/block.5
ok "the guide's doctor" bash -e /root/block.6
ok "it finds nothing that does not work" not grep -E '^ *error ' /root/said

# --- behind lighttpd, with what tests/instance asks of it
cp -a /etc/pinfold /root/etc-before-tests
systemctl stop apache2
ok "lighttpd is installed" install lighttpd
ok "its example" bash -c 'echo "include \"/etc/pinfold/web-servers/lighttpd.conf\"" >/etc/lighttpd/conf-enabled/pinfold.conf && systemctl restart lighttpd'
ok "ready" wait_until ready
cat /root/tests/tests/instance/extra.conf >>/etc/pinfold/pinfold.conf
# A key that cannot be anywhere by chance.
ok "another key" bash -c 'head -c 30 /dev/urandom | base64 >/etc/pinfold/secrets/provider-default'
ok "tenants of the tests" systemctl restart pinfold
ok "ready" wait_until ready
ok "their tokens" pinfold setup --token-file /api-token --device-token-file /device-token
ok "tests/instance/t_runs.py" env -C / PINFOLD_URL=http://127.0.0.1:80 PINFOLD_INSTANCE= PINFOLD_CLI=/usr/bin/pinfold PYTHONDONTWRITEBYTECODE=1 \
	/root/tests/tests/instance/t_runs.py
tail -n 1 /root/said | sed 's/^/# /'
ok "tests/instance/t_withheld.py" env -C / PINFOLD_URL=http://127.0.0.1:80 PINFOLD_INSTANCE= PINFOLD_CLI=/usr/bin/pinfold PYTHONDONTWRITEBYTECODE=1 \
	/root/tests/tests/instance/t_withheld.py
tail -n 1 /root/said | sed 's/^/# /'
rm /api-token /device-token
systemctl stop lighttpd
cp -a /root/etc-before-tests/. /etc/pinfold
ok "Apache again" systemctl start apache2
ok "the configuration of before" systemctl restart pinfold
ok "ready" wait_until ready

# --- installed over itself, stopped by hand in between
ok "reinstalled" install --reinstall "$new"
ok "ready" wait_until ready

# --- removed, and back
ok "apt removes it" apt-get remove -y -q pinfold
ok "no process is left" none < <(ours)
ok "no mount is left" none < <(grep pinfold /proc/self/mounts)
ok "no group is left" none < <(find /sys/fs/cgroup -name '*pinfold*' ! -name 'pinfold-canned*')
ok "no program is left" none < <(find /usr -name '*pinfold*')
ok "nothing at run time is left" not test -e /run/pinfold
ok "configuration, secrets, store and log stay" test -e /etc/pinfold/pinfold.conf -a -s /etc/pinfold/secrets/run-token -a -e /var/lib/pinfold/store/pinfold.db -a -e /var/log/pinfold/audit.log
ok "apt brings it back" install "$new"
ok "ready" wait_until ready
ok "with its runs" field_is $T "$done_id" status completed

# --- purged
purged

# --- as Debian tests packages
systemctl stop pinfold-canned
rm -rf /root/pinfold-token /tmp/calc
ok "which has a tool for it" install autopkgtest dpkg-dev
ok "autopkgtest" autopkgtest --ignore-restrictions=isolation-machine --no-built-binaries "$new" /root/tests/source -- null
ok "passes" grep -qE '^smoke +PASS' /root/said
echo "the end"
