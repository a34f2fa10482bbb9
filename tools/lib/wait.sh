# Waiting for a condition, never for time to pass. Sourced by quickstart and by tests.

# wait_until COMMAND...: until it succeeds; 1 if it does not within two minutes (or patience, in seconds), which is for a
# sanitized build on a machine with other work to do.
wait_until() {
	local wait_end=$((SECONDS + ${patience:-120}))
	until "$@"; do
		[ $SECONDS -lt $wait_end ] || return 1
		sleep 0.05
	done
}
