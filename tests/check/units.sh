#!/bin/bash
# The service's files: whole, accepted by systemd's own checkers where they are, and in step with the source.
src=${srcdir:-$(dirname "$0")/../..} work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
check() { if eval "$2" >"$work/out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $1" && cat "$work/out"; fi; }
files="etc/systemd/pinfold.service etc/systemd/sysusers.d/pinfold.conf etc/systemd/tmpfiles.d/pinfold.conf"

check "nothing is left to be filled in" "! grep -n '@[a-z]*@' $files"
# The users and groups that pinfold setup writes into pinfold.conf.
for name in $(grep -oE '(stored|fcgi|gateway|steward|shared_group) = \\"pinfold[a-z-]*' "$src/cli/cmd_setup.c" | sed 's/.*"//' | sort -u); do
	check "sysusers.d makes $name" "grep -qE '^[ug] $name ' etc/systemd/sysusers.d/pinfold.conf"
done
# What only an administrator can mend is not tried again.
check "the unit knows the status of the unfit" "grep -qx 'RestartPreventExitStatus=$(sed -n 's/.*UNFIT = \([0-9]*\).*/\1/p' "$src/lib/die.h")' etc/systemd/pinfold.service"
if command -v systemd-analyze >/dev/null; then
	# The program need not be installed for this.
	sed -e "s,^ExecStart=.*,ExecStart=$PWD/sandboxd/pinfold-sandboxd," -e "s,^ExecReload=.*,ExecReload=$PWD/cli/pinfold config reload," etc/systemd/pinfold.service >"$work/pinfold.service"
	check "systemd-analyze verify" "SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no --recursive-errors=no '$work/pinfold.service' && ! grep . '$work/out'"
	# What it exposes, by systemd's own measure (0 to 100, tenths of the printed figure); it can only fall.
	check "systemd-analyze security" "systemd-analyze security --offline=true --threshold=47 --no-pager '$work/pinfold.service'"
	mkdir -p "$work/root/etc"
	check "systemd-sysusers" "systemd-sysusers --root='$work/root' '$PWD/etc/systemd/sysusers.d/pinfold.conf' && grep -q ^pinfold-store: '$work/root/etc/passwd'"
	check "systemd-tmpfiles" "systemd-tmpfiles --create --root='$work/root' '$PWD/etc/systemd/tmpfiles.d/pinfold.conf' && [ -n \"\$(find '$work/root/run/pinfold' -maxdepth 0 -perm 711)\" ]"
else
	echo "systemd is not on this machine: its own checks of the unit are left out"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
