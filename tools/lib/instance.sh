# A private instance: folder, ids, processes, web server. Sourced by quickstart.
# Everything it starts dies with it (parent-death signals); everything it makes is below one folder.

# shellcheck source=tools/lib/wait.sh
. "$top/tools/lib/wait.sh"
inst_root= inst_port= inst_web=lighttpd inst_upstream= inst_model= inst_config= inst_scenario=
inst_made_root=no inst_stopping=no pid_sandboxd= pid_web= pid_model= pid_pause= inst_build= inst_locks=()
declare -A inst_since=() inst_quick=()

parse_up_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--root | --port | --web-server | --upstream | --model | --config | --scenario)
			[ $# -ge 2 ] || { say "quickstart: $1 needs a value"; return 1; } ;;
		*) say "quickstart: unknown option $1"; return 1 ;;
		esac
		case $1 in
		--root) inst_root=$2 ;;
		--port) inst_port=$2 ;;
		--web-server) inst_web=$2 ;;
		--upstream) inst_upstream=$2 ;;
		--model) inst_model=$2 ;;
		--config) inst_config=$2 ;;
		--scenario) inst_scenario=$2 ;;
		esac
		shift 2
	done
	[ -z "$inst_root" ] || inst_root=$(realpath -ms -- "$inst_root")
	case $inst_port in
	0* | *[!0-9]* | ??????*) false ;;
	*) [ "${inst_port:-1}" -lt 65536 ] ;;
	esac || { say "quickstart: --port takes a number from 1 to 65535"; return 1; }
	# An address within it must fit into a socket's name.
	[ "${#inst_root}" -le 68 ] || { say "quickstart: --root takes a path of at most 68 characters"; return 1; }
	case $inst_root in
	*[!!-~]*) say "quickstart: --root takes a path of printable ASCII without spaces"; return 1 ;;
	esac
	case $inst_upstream in
	'' | https://?*/v1 | http://?*/v1) ;;
	*) say "quickstart: --upstream takes an address that ends in /v1"; return 1 ;;
	esac
	case $inst_web in
	lighttpd | apache | nginx) ;;
	*) say "quickstart: --web-server: lighttpd, apache or nginx"; return 1 ;;
	esac
	[ -z "$inst_config" ] || [ -r "$inst_config" ] || { say "quickstart: $inst_config cannot be read"; return 1; }
	[ -z "$inst_scenario" ] || [ -r "$inst_scenario" ] || { say "quickstart: $inst_scenario cannot be read"; return 1; }
}

# take FD FILE: holds a lock on this file while this script lives. Its programs do not inherit it, so it ends with us.
take() {
	eval "exec $1>\"\$2\"" || return
	flock -n "$1" && [ "/proc/self/fd/$1" -ef "$2" ] && inst_locks+=("$2") && return
	eval "exec $1>&-"
	return 1
}

# Numeric ids that no other instance uses.
take_uid_range() {
	local k
	for k in $(seq 0 199); do
		take 8 "/run/lock/pinfold-ids-$k" && inst_uid_base=$((1600000000 + k * 1000)) && return
	done
	stop_with "200 instances are running already"
}

# The instance's processes run as users of their own: each folder on the way must let them through.
reachable() {
	local dir=$1
	while [ "$dir" != / ]; do
		dir=$(dirname "$dir")
		case $(stat -c %A "$dir") in
		*[xt]) ;;
		*) say "quickstart: others may not pass through $dir, so the instance's processes cannot reach $1: choose another --root or chmod o+x $dir"; return 1 ;;
		esac
	done
}

port_is_free() { ! (exec 7<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

pick_port() {
	local p
	if [ -n "$inst_port" ]; then
		port_is_free "$inst_port" || stop_with "port $inst_port is in use: choose another with --port"
		return
	fi
	for p in $(seq 8080 8279); do
		# Of two that start at the same time neither sees the other's web server yet.
		port_is_free "$p" && take 6 "/run/lock/pinfold-port-$p" && inst_port=$p && return
	done
	stop_with "no free port between 8080 and 8279: choose one with --port"
}

cli() { PINFOLD_ROOT=$inst_root "$inst_root/usr/bin/pinfold" "$@"; }

# For the background only: becomes the program. Ends with this script, whatever happens to it; holds none of its locks.
child() { exec setpriv --pdeathsig TERM "$@" 6>&- 8>&- 9>&-; }

model_up_or_down() { model_port=$(sed -n 's/^listening //p' "$1/out"); [ -n "$model_port" ] || ! kill -0 "$pid_model" 2>/dev/null; }
start_model() {
	local dir=$inst_root/model
	mkdir -p "$dir" && chmod 755 "$dir"
	: >"$dir/out"
	child "$inst_root/usr/libexec/pinfold/pinfold-scripted-model" --listen 127.0.0.1:0 --self-signed "$dir" \
		${inst_scenario:+--scenario "$inst_scenario"} --log "$dir/log" >"$dir/out" 2>>"$dir/errors" &
	pid_model=$!
	wait_until model_up_or_down "$dir"
	[ -n "$model_port" ] || { cat "$dir/errors" >&2; stop_with "the scripted model did not start"; }
}

start_web() {
	child "$top/tools/web-front.sh" "$inst_web" "$inst_root/web" "$inst_port" "$inst_root/run/pinfold/public/fcgi.sock" >>"$inst_root/web/out.log" 2>&1 &
	pid_web=$!
	inst_since[web]=$SECONDS
}

start_sandboxd() {
	PINFOLD_ROOT=$inst_root child "$inst_root/usr/sbin/pinfold-sandboxd" >&2 &
	pid_sandboxd=$!
	inst_since[sandboxd]=$SECONDS
}

ready_or_down() {
	[ "$(curl -s --noproxy '*' -o /dev/null -w '%{http_code}' "http://127.0.0.1:$inst_port/readyz" 2>/dev/null)" = 200 ] && inst_ready=yes ||
		! kill -0 "$pid_sandboxd" 2>/dev/null || ! kill -0 "$pid_web" 2>/dev/null
}
wait_ready() {
	local inst_ready=no
	wait_until ready_or_down
	[ $inst_ready = yes ] || kill -0 "$pid_web" 2>/dev/null || cat "$inst_root"/web/*.log >&2
	[ $inst_ready = yes ]
}

no_jobs() { [ -z "$(jobs -rp)" ]; }
inst_stop() {
	local pid
	[ "$inst_stopping" = no ] || return 0
	inst_stopping=yes
	for pid in $pid_web $pid_sandboxd $pid_model $pid_pause; do kill -TERM "$pid" 2>/dev/null; done
	patience=30 wait_until no_jobs
	for pid in $pid_sandboxd $pid_web $pid_model; do kill -KILL "$pid" 2>/dev/null; done
	wait 2>/dev/null
	[ "$inst_made_root" = no ] || rm -rf --one-file-system "$inst_root"
	[ ${#inst_locks[@]} -eq 0 ] || rm -f "${inst_locks[@]}"
}

# Makes the folder, installs the build into it, writes its configuration, starts everything.
instance_start() {
	local args=() dir=${PINFOLD_BUILD:-$top/build}
	take_uid_range
	if [ -z "$inst_root" ]; then
		inst_root=$(mktemp -d /tmp/pinfold.XXXXXX) || exit 1
		inst_made_root=yes
	fi
	trap 'inst_stop; exit 0' TERM
	trap 'inst_stop; exit 130' INT
	trap 'inst_stop' EXIT
	mkdir -p "$inst_root" && chmod 711 "$inst_root" || stop_with "$inst_root cannot be made: choose another --root"
	reachable "$inst_root" || exit 1
	(flock 9 && make -C "$dir" install DESTDIR="$inst_root" >"$dir/install.log" 2>&1) 9>"$dir/.lock" || {
		tail -n 5 "$dir/install.log" >&2
		stop_with "installing into $inst_root failed"
	}
	pick_port
	args=(--uid-base "$inst_uid_base" --web-group www-data)
	if [ -n "$inst_upstream" ]; then
		# The key for that upstream: OPENAI_API_KEY where it is set, else one that means nothing.
		export PINFOLD_UPSTREAM_KEY=${OPENAI_API_KEY:-sk-upstream-of-a-test-instance}
		args+=(--base-url "$inst_upstream" --model "${inst_model:-test-model}" --provider-key-env PINFOLD_UPSTREAM_KEY)
		inst_asks="$inst_upstream"
	elif [ -n "${OPENAI_API_KEY-}" ]; then
		args+=(--base-url https://api.openai.com/v1 --model "${inst_model:-gpt-4.1-mini}" --provider-key-env OPENAI_API_KEY)
		inst_asks="the OpenAI API (OPENAI_API_KEY is set: this costs money)"
	else
		start_model
		export PINFOLD_SCRIPTED_KEY="sk-scripted-model-takes-any-key"
		args+=(--base-url "https://127.0.0.1:$model_port/v1" --ca-file "$inst_root/model/ca.pem" --scripted
			--model "${inst_model:-scripted-model}" --provider-key-env PINFOLD_SCRIPTED_KEY)
		inst_asks="the SCRIPTED MODEL (canned answers, no AI)"
	fi
	if [ -d "$inst_root/etc/pinfold/providers.d" ]; then
		# A root that is used again: ids and upstream are this start's, the rest stays.
		rm -f "$inst_root/etc/pinfold/pinfold.conf" "$inst_root/etc/pinfold/providers.d/default.conf"
		[ -z "$inst_model" ] || rm -f "$inst_root/etc/pinfold/profiles.d/default.conf"
	fi
	cli setup "${args[@]}" >&2 || exit 1
	# What the file sets itself is taken out: nothing may stand twice.
	[ -z "$inst_config" ] || sed -n 's/^\([a-z_]*\) *=.*/\1/p' "$inst_config" | while read -r name; do sed -i "/^$name *=/d" "$inst_root/etc/pinfold/pinfold.conf"; done
	[ -z "$inst_config" ] || cat "$inst_config" >>"$inst_root/etc/pinfold/pinfold.conf"
	unset PINFOLD_UPSTREAM_KEY PINFOLD_SCRIPTED_KEY
	chown -R "$((inst_uid_base + 1)):$((inst_uid_base + 1))" "$inst_root/var/lib/pinfold/store" \
		"$inst_root/var/log/pinfold" 2>/dev/null
	mkdir -p "$inst_root/web"
	start_sandboxd
	start_web
	wait_ready || stop_with "the instance did not become ready; the lines above say why"
	cli setup --token-file "$inst_root/api-token" --device-token-file "$inst_root/device-token" >&2 || exit 1
	inst_url=http://127.0.0.1:$inst_port
}

# again sandboxd|web: starts what has ended, as the service unit does: after 0.1 s, and while it keeps ending within
# 2 s, after pauses that double. The sixth such end in a row is the last; so is the first that only mending helps (78).
again() {
	local name=$1 pid=pid_$1 ms
	wait "${!pid}" 2>/dev/null
	[ $? != 78 ] || stop_with "$name cannot start; the lines above say what to mend"
	[ $((SECONDS - inst_since[$name])) -le 2 ] || inst_quick[$name]=0
	inst_quick[$name]=$((${inst_quick[$name]:-0} + 1))
	[ "${inst_quick[$name]}" -lt 6 ] || stop_with "$name ended six times in a row within 2 s of its start; the lines above say why"
	ms=$((100 << (inst_quick[$name] - 1)))
	say "quickstart: $name ended; starting it again in $ms ms"
	sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" &
	pid_pause=$!
	wait "$pid_pause" 2>/dev/null # unlike sleep itself, ended at once by a signal to us
	"start_$name"
}

# Waits; a dead sandboxd or web server is started again.
instance_wait() {
	while :; do
		wait -n 2>/dev/null
		kill -0 "$pid_sandboxd" 2>/dev/null || again sandboxd
		kill -0 "$pid_web" 2>/dev/null || again web
	done
}

instance_serve() {
	instance_start
	printf 'ready {"url":"%s","apiTokenFile":"%s","deviceTokenFile":"%s","pid":%d}\n' "$inst_url" "$inst_root/api-token" \
		"$inst_root/device-token" $$
	instance_wait
}

instance_sample() {
	local status run
	say "starting a private instance"
	instance_start
	say "serving $inst_url ($inst_web), asking $inst_asks"
	say ""
	PINFOLD_URL=$inst_url PINFOLD_ROOT=$inst_root "$inst_root/usr/bin/pinfold" --token-file "$inst_root/api-token" run --patch \
		-i "The test in this project fails. Find out why, repair calc.py, and make the test pass." \
		--allow calc.py --check "python3 -m unittest discover" "$top/examples/calc"
	status=$?
	[ "$1" = --once ] && exit $status
	say ""
	say "Pinfold stays up until Ctrl-C. Watch it and answer its agents in a browser; the code is good once, for ten minutes:"
	say "  $(PINFOLD_URL=$inst_url cli --json device pair | sed -n 's/.*"page":"\([^"]*\)".*/\1/p')"
	say "Or at a terminal:"
	say "  export PINFOLD_URL=$inst_url"
	say "  sudo -E ./pinfold --token-file $inst_root/api-token --device-token-file $inst_root/device-token \\"
	say "      run -i 'Make the test pass' --allow calc.py --ask edit_file examples/calc    (asks you before it changes the file)"
	say "  sudo -E ./pinfold --device-token-file $inst_root/device-token ps"
	say "  sudo PINFOLD_ROOT=$inst_root ./pinfold token list    (the operator's commands)"
	instance_wait
}
