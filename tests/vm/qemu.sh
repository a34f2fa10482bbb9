# A machine by emulation (no KVM needed). Sourced by run.sh and by tests/package/run.sh; who sources it kills $qemu at the end.

# vm_boot KERNEL INITRD WORDS CONSOLE RESULTS DRIVE...: started, as $qemu. What the kernel says goes to CONSOLE, what the machine
# writes to /dev/ttyS1 to RESULTS. DRIVE: FILE, as vda, vdb, ...; the file stays as it was.
# no_timer_check: where this machine is busy, the kernel finds that its timer "doesn't work", and panics.
vm_boot() {
	local kernel=$1 initrd=$2 words=$3 console=$4 results=$5 drives=() drive
	shift 5
	for drive; do drives+=(-drive "file=$drive,format=raw,if=virtio,snapshot=on"); done
	: >"$console" && : >"$results"
	nice -n 5 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults -no-user-config -display none -nic none \
		"${drives[@]}" -kernel "$kernel" -initrd "$initrd" \
		-append "root=/dev/vda rw console=ttyS0 quiet loglevel=3 panic=-1 systemd.show_status=no no_timer_check nosoftlockup $words" \
		-serial file:"$console" -serial file:"$results" 9>&- &
	qemu=$!
}

# vm_show RESULTS: its lines as they come, until it ends. One that hangs is ended after VM_SECONDS.
vm_show() {
	local shown=0 lines
	for _ in $(seq "${VM_SECONDS:-4000}"); do
		lines=$(wc -l <"$1")
		[ "$lines" = $shown ] || sed -n "$((shown + 1)),${lines}p" "$1" | tr -d '\r'
		shown=$lines
		kill -0 "$qemu" 2>/dev/null || break
		sleep 1
	done
	kill "$qemu" 2>/dev/null
	[ "$(wc -l <"$1")" = $shown ] || sed -n "$((shown + 1)),\$p" "$1" | tr -d '\r'
}
