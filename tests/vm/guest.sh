#!/bin/bash
# guest.sh [plain|v1]: runs in the virtual machine, started by its vm-test.service; /mnt is the second disk. Two lives: in the first
# Pinfold is installed as pinfold-sandboxd(8) says, then the machine is started again; in the second, into which the service
# came by itself, the tests run. plain, v1: process 1 is a script instead of systemd, and there is one life. Lines "ok ..." and "FAIL ..." go to the second serial line; the end is "the end".
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root PYTHONDONTWRITEBYTECODE=1
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1 </dev/null
cd / || exit 1
mode=${1-systemd} life=/var/lib/vm-life
model=/opt/model
log() { echo "# $*"; }
ok() { # ok WHAT COMMAND...: nothing goes on without it
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then echo "ok $what"; return; fi
	echo "FAIL $what: $(tail -n 5 <<<"$said" | tr '\n' ' ')"
	last
}
last() { # the machine ends; what the journal has of the service goes to the console
	echo "the end"
	{
		echo "--- journal"
		if [ $mode != systemd ]; then tail -n 120 /var/log/sandboxd; else journalctl -b -o cat --no-pager -u pinfold -u lighttpd -u scripted-model | tail -n 120; fi
		dmesg | tail -n 30
	} >/dev/ttyS0
	sync
	[ $mode != systemd ] || systemctl poweroff --force
	exit
}
answers() {
	local n
	for n in $(seq 1500); do
		[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1$1")" = 200 ] && return
		sleep 0.2
	done
	return 1
}

# As a service manager would, for want of one: starts it again unless it is told not to.
keep_alive() {
	ulimit -n 65536
	while :; do
		pinfold-sandboxd 2>>/var/log/sandboxd
		echo $? >/run/vm-status
		while [ -e /run/vm-hold ]; do sleep 0.1; done
		sleep 0.1
	done
}
run_it() { # run_it NAME COMMAND...: as a service
	local name=$1
	shift
	if [ $mode != systemd ]; then
		"$@" >"/var/log/$name" 2>&1 &
		return
	fi
	printf '[Service]\nExecStart=%s\n[Install]\nWantedBy=multi-user.target\n' "$*" >"/etc/systemd/system/$name.service"
	systemctl daemon-reload && systemctl enable --now "$name"
}

install_it() {
	ok "files are installed" cp -a --no-preserve=ownership /mnt/installed/. /
	ok "users are made" systemd-sysusers
	ok "folders are made" systemd-tmpfiles --create
	# Not Pinfold's, and a service here so that it lives again after the machine's new start.
	mkdir -p $model
	ok "the model is started" run_it scripted-model /usr/libexec/pinfold/pinfold-scripted-model --listen 127.0.0.1:8443 --self-signed $model --log $model/log
	for _ in $(seq 300); do [ -s $model/ca.pem ] && break || sleep 0.1; done
	KEY=sk-scripted-model-takes-any-key ok "pinfold setup" pinfold setup --base-url https://127.0.0.1:8443/v1 --ca-file $model/ca.pem --scripted \
		--model scripted-model --provider-key-env KEY
	cat /mnt/tests/instance/extra.conf >>/etc/pinfold/pinfold.conf
	echo 'include "/etc/pinfold/web-servers/lighttpd.conf"' >/etc/lighttpd/conf-enabled/pinfold.conf
	if [ $mode != systemd ]; then
		keep_alive &
		ok "lighttpd takes the example" lighttpd -f /etc/lighttpd/lighttpd.conf
	else
		ok "the unit is enabled and started" systemctl enable --now pinfold
		ok "lighttpd takes the example" systemctl restart lighttpd
	fi
	ok "it is ready" answers /readyz
	ok "first tokens" pinfold setup --token-file /api-token --device-token-file /device-token
}
tests() {
	local test file status
	for test; do
		log "$test"
		case $test in t_vm.py) file=/mnt/tests/vm/$test ;; *) file=/mnt/tests/instance/$test ;; esac
		timeout 1800 "$file" | tee /run/vm-said | grep -vE '^[0-9]+ passed, [0-9]+ failed$'
		status=${PIPESTATUS[0]}
		# One that breaks off ends with 1 as one that found something does, and has no last line.
		[ "$status" -le 1 ] && tail -n 1 /run/vm-said | grep -qE '^[0-9]+ passed, [0-9]+ failed$' || echo "FAIL $test ended with $status before its end"
	done
}

# No root of its own: paths of the instance begin with nothing, and tokens are in this folder.
export PINFOLD_URL=http://127.0.0.1:80 PINFOLD_INSTANCE= PINFOLD_CLI=/usr/bin/pinfold VM_MODE=$mode PINFOLD_PATIENCE=5
if [ ! -e $life ]; then
	log "$(uname -r), process 1 is $(readlink /proc/1/exe)"
	install_it
	if [ $mode != systemd ]; then
		tests t_vm.py
		last
	fi
	echo 1 >$life
	sync
	systemctl reboot --force
	exit
fi
[ "$(cat $life)" = 1 ] || { log "a life too many"; last; }
echo 2 >$life
ok "ready again after the machine's new start" answers /readyz
tests t_vm.py $(cat /mnt/only)
last
