#!/bin/bash
# Runs in the virtual machine, started by its vm-test.service; /mnt is the second disk. Two lives: in the first Pinfold is
# installed as pinfold-sandboxd(8) says, then the machine is started again; in the second, into which the service
# came by itself, the tests run. Lines "ok ..." and "FAIL ..." go to the second serial line; the end is "the end".
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root PYTHONDONTWRITEBYTECODE=1
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1 </dev/null
cd / || exit 1
life=/var/lib/vm-life
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
		journalctl -b -o cat --no-pager -u pinfold -u lighttpd -u scripted-model | tail -n 120
		dmesg | tail -n 30
	} >/dev/ttyS0
	sync
	systemctl poweroff --force
	exit
}
answers() {
	local n
	for n in $(seq 600); do
		[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1$1")" = 200 ] && return
		sleep 0.2
	done
	systemctl status pinfold lighttpd --no-pager
	return 1
}

install_it() {
	# Not Pinfold's: the model, which is a service here so that it lives again after the machine's new start.
	mkdir -p $model
	cat >/etc/systemd/system/scripted-model.service <<U
[Service]
ExecStart=/usr/libexec/pinfold/pinfold-scripted-model --listen 127.0.0.1:8443 --self-signed $model --log $model/log
[Install]
WantedBy=multi-user.target
U
	ok "files are installed" cp -a --no-preserve=ownership /mnt/installed/. /
	ok "users are made" systemd-sysusers
	ok "folders are made" systemd-tmpfiles --create
	systemctl daemon-reload
	ok "the model is started" systemctl enable --now scripted-model
	for _ in $(seq 300); do [ -s $model/ca.pem ] && break || sleep 0.1; done
	KEY=sk-scripted-model-takes-any-key ok "pinfold setup" pinfold setup --base-url https://127.0.0.1:8443/v1 --ca-file $model/ca.pem --scripted \
		--model scripted-model --provider-key-env KEY
	cat /mnt/tests/instance/extra.conf >>/etc/pinfold/pinfold.conf
	ok "the unit is enabled and started" systemctl enable --now pinfold
	ok "lighttpd takes the example" sh -c 'echo "include \"/etc/pinfold/web-servers/lighttpd.conf\"" >/etc/lighttpd/conf-enabled/pinfold.conf && systemctl restart lighttpd'
	ok "it is ready" answers /readyz
	ok "first tokens" pinfold setup --token-file /api-token --device-token-file /device-token
}

export PINFOLD_URL=http://127.0.0.1 PINFOLD_INSTANCE=/ PINFOLD_CLI=/usr/bin/pinfold
if [ ! -e $life ]; then
	log "$(uname -r), $(systemctl --version | head -n 1)"
	install_it
	echo 1 >$life
	sync
	systemctl reboot --force
	exit
fi
[ "$(cat $life)" = 1 ] || { log "a life too many"; last; }
echo 2 >$life
ok "ready again after the machine's new start" answers /readyz
for test in t_vm.py $(cat /mnt/only); do
	case $test in t_vm.py) file=/mnt/tests/vm/$test ;; *) file=/mnt/tests/instance/$test ;; esac
	log "$test"
	timeout 900 "$file" | grep -vE '^[0-9]+ passed, [0-9]+ failed$'
	[ "${PIPESTATUS[0]}" -le 1 ] || echo "FAIL $test ended with ${PIPESTATUS[0]}"
done
last
