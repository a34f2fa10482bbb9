#!/bin/bash
# guest.sh OLD.deb NEW.deb GUIDE: runs as root in the machine that run.sh has made, a fresh Debian with systemd and no network. Follows
# the guide with the older package, upgrades to the newer one beside live data, removes, installs again, purges, and looks for
# what is left. Lines "ok ..." and "FAIL ..."; nothing goes on after a failure.
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
install() { apt-get install -y -q -o Dpkg::Use-Pty=0 "$@"; }
unit_is() { [ "$(systemctl is-enabled pinfold) $(systemctl is-active pinfold)" = "$1" ]; }
ready() { curl -sS --fail -o /dev/null http://127.0.0.1/readyz; }
cli() { pinfold --server http://127.0.0.1 --token-file "$@"; }
field() { cli "$1" --json show "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$3"; }
ids_of() { grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | awk '!seen[$0]++'; }
field_is() { [ "$(field "$1" "$2" "$3")" = "$4" ]; }
ours() { ps -eo args= | grep -E '^[^ ]*/pinfold-|^pinfold-' | grep -v scripted-model; }

mkdir -p /root/package && cd /root/package || exit 1
cp "$old" .

# --- installed, not set up
# Each block of the guide between ```sh and ``` is run as it is; the first of them installs.
awk '/^```sh$/ { n++; f = "/root/block." n; next } /^```$/ { f = ""; next } f { print >f }' "$guide"
ok "the guide has its blocks" test -e /root/block.6
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

# --- the guide, as it is
start=$SECONDS
ok "from the guide's setup to its first run" /root/tests/smoke "$guide"
ok "which printed its patch" grep -q '^ *+ *return a + b' /root/said
echo "# from setup to the end of the first run: $((SECONDS - start)) s"
ok "the guide's doctor" bash -e /root/block.6
ok "it finds nothing that does not work" not grep -E '^ *error ' /root/said

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
cp -a /etc/pinfold /root/etc-before
echo '# of the administrator' >>/etc/pinfold/web-servers/nginx.conf

# --- upgraded
ok "apt upgrades it" install -o Dpkg::Options::=--force-confdef "$new"
ok "the newer one is there" test "$(dpkg-query -W -f '${Version}' pinfold)" = "$(dpkg-deb -f "$new" Version)"
ok "and runs" unit_is "enabled active"
ok "ready" wait_until ready
ok "what had ended is as it was" field_is $T "$done_id" status completed
ok "with its patch" bash -c "pinfold --server http://127.0.0.1 --token-file $T artifacts $done_id patch | grep -q '^+.*return a + b'"
ok "what ran has failed" wait_until field_is $S "${ids[0]}" status failed
ok "and says why" field_is $S "${ids[0]}" terminalReason controller_restarted
ok "what waited runs now" wait_until field_is $S "${ids[1]}" status running
ok "configuration and secrets are untouched" diff -r -x web-servers /etc/pinfold /root/etc-before
ok "a changed example stayed" grep -q 'of the administrator' /etc/pinfold/web-servers/nginx.conf
ok "the store fits together" pinfold store check --contents
ok "the audit log as well" pinfold audit verify
rm -rf /tmp/calc
ok "the first run again" bash -e /root/block.5

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
ok "apt purges it" apt-get purge -y -q pinfold
ok "no process is left" none < <(ours)
ok "no file is left" none < <(find / -xdev \( -path /root -o -path /tmp -o -path /var/cache/apt -o -path /var/log/apt -o -path /proc \) -prune -o -name '*pinfold*' \
	! -path '/etc/apache2/*' ! -path '/var/lib/apache2/*' -print)
ok "nothing of it is known to dpkg and systemd" not bash -c 'dpkg-query -s pinfold || systemctl cat pinfold'
ok "its users stay, locked" bash -c 'getent shadow pinfold-store | grep -qE "^pinfold-store:!"'
ok "nobody owns what is left of them" none < <(find / -xdev \( -path /root -o -path /tmp -o -path /proc \) -prune -o \( -user pinfold -o -user pinfold-store -o -user pinfold-gateway \
	-o -user pinfold-steward -o -user pinfold-push -o -group pinfold \) -print)
echo "the end"
