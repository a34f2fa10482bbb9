#!/bin/bash
# Verifies the models of spec/models with spin, and that each broken variant of them is found out.
#
#   tests/check/models.sh              every row below; the last line is: N passed, N failed
#   tests/check/models.sh -v WORD...   only rows that have all these words, with the way to each violation
#
# FAULTS=N in the environment has the whole models (not the variants) verified with N faults; each one more takes
# about ten times as long and as much memory. Needs spin, gcc and about 1 GB of memory; no root.
# shellcheck disable=SC2086
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
verbose=
[ "${1-}" != -v ] || { verbose=yes; shift; }
command -v spin >/dev/null || { echo "spin is missing: install the Debian package spin"; exit 77; }
work=$(mktemp -d /tmp/pinfold-models.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
passed=0 failed=0
more=${FAULTS:+-DFAULTS=$FAULTS}

# model | flags of spin | ends: no cycle, so that every way ends; holds: the assertions | change of its table (sed) |
# what the violation must say (nothing: there must be none)
rows() {
	cat <<'T'
run||holds||
run|-DFAULTS=1|ends||
run|-DFAULTS=1 -DARCHIVE|holds||
run|-DFAULTS=1 -DARCHIVE|ends||
run|-DFAULTS=1 -DARCHIVE -DBREAK_UNPACK_STAYS|holds||assertion violated
run|-DBREAK_TERMINAL_FIRST|holds||assertion violated (dirty||
run|-DBREAK_SPAWN_FIRST|holds||assertion violated (ran[kind]<=1)
run|-DBREAK_ANSWER_FIRST|holds||assertion violated
run|-DBREAK_DROP_WAKE|holds||assertion violated ( !(told_created)||
run|-DBREAK_NO_SWEEP|holds||assertion violated
run||holds|/^running/s/refuse:illegal_run_transition/keep/|assertion violated  !(told_revoked)
run||holds|/^cancelling/s/go:cancelled/go:completed/|assertion violated (( !(told_cancel)
run||holds|/^queued/s/go:cancelled/keep/|assertion violated
run|-DFAULTS=1|ends|/^running/s/go:failed( +)go:failed$/keep\1go:failed/|non-progress cycle
budget||holds||
budget|-DFAULTS=1 -DUNITS=1|holds||
budget|-DFAULTS=1|ends||
budget|-DFAULTS=1 -DBREAK_NO_OPERATION_ID|holds||assertion violated (m_used<=questions)
budget|-DFAULTS=1 -DBREAK_KEPT_APART|holds||assertion violated (m_used<=questions)
budget|-DBREAK_ANSWER_FIRST|holds||assertion violated (m_used>=forwarded)
budget|-DBREAK_GIVE_BACK -DUNITS=1|holds||assertion violated (forwarded<=1)
budget|-DBREAK_NO_LAST_LOOK|holds||assertion violated ((err!=0)|| !(late))
budget|-DBREAK_REMEMBERS|holds||assertion violated ((err!=0)|| !(late))
box||holds||
box||ends||
box|-DBREAK_GROUP_LEFT|holds||assertion violated
box|-DBREAK_USED_AGAIN|holds||assertion violated
box|-DBREAK_KILL_FORGOTTEN|holds||assertion violated ( !(awaited[1])
box|-DBREAK_NO_SWEEP|holds||assertion violated
box||ends|/^killed/s/go:quarantined/keep/|non-progress cycle
approval||holds||
approval|-DFAULTS=0|ends||
approval|-DBREAK_ANSWER_FIRST|holds||assertion violated ((d_q[0]==1)
approval|-DBREAK_SECOND_WINS|holds||assertion violated
approval|-DBREAK_DEVICE_REMEMBERED|holds||assertion violated ( !(told_revoked)
approval|-DBREAK_GRANT_APART|holds||assertion violated ((( !(granted)
approval|-DBREAK_END_LEAVES|holds||assertion violated (((agent_done
approval||holds|/^expired/s/refuse:approval_expired/keep/|assertion violated
wait||holds||
wait|-DFAULTS=1|ends||
wait|-DBREAK_NOBODY_LOOKS|holds||assertion violated ( !(frozen)
wait|-DBREAK_NO_RESYNC|holds||assertion violated ( !(frozen)
wait|-DBREAK_CALL_UNSEEN|holds||assertion violated  !(frozen)
wait|-DBREAK_TERM_FROZEN|holds||assertion violated
T
}

good() { passed=$((passed + 1)); printf '  ok    %s\n' "$*"; }
bad() { failed=$((failed + 1)); printf '  FAIL  %s\n' "$*"; }

# verify MODEL FLAGS MODE TABLE: into $work/pan.out. Not optimised: that costs more than it brings, the verifier being one
# enormous function.
verify() {
	local model=$1 flags=$2 mode=$3 change=$4 define=-DSAFETY option= table=run
	[ "$model" != box ] || table=sandbox
	[ "$model" != approval ] || table=approval
	[ "$mode" = holds ] || define=-DNP option=-l
	rm -f "$work"/*
	cp "$top"/spec/models/*.pml "$work/" && sed -E "$change" "$top/spec/$table.fsm" >"$work/$table.fsm" || return 1
	[ -z "$change" ] || ! cmp -s "$work/$table.fsm" "$top/spec/$table.fsm" || { echo "the change of $table.fsm changes nothing" >"$work/pan.out"; return 1; }
	${AWK:-awk} -v out=pml -f "$top/tools/gen-fsm.awk" "$top/spec/errors.tab" "$work/$table.fsm" >"$work/${table}_fsm.pml" 2>"$work/pan.out" &&
		(cd "$work" && spin -a $flags "$model.pml" && ${CC:-gcc} -w -O0 -DCOLLAPSE -DMEMLIM=4000 $define -o pan pan.c) >>"$work/pan.out" 2>&1 &&
		(cd "$work" && ./pan -w22 -m100000 $option) >>"$work/pan.out" 2>&1
}

while IFS='|' read -r -u 3 model flags mode change want; do
	name="$model $flags $mode${change:+, table $change}"
	for word; do
		case $name in *"$word"*) ;; *) continue 2 ;; esac
	done
	[ -n "$want" ] || [ "$mode" != holds ] || [ -z "$more" ] || flags="$more ${flags#-DFAULTS=1}"
	if ! verify "$model" "$flags" "$mode" "$change"; then
		bad "$name"
		tail -n 20 "$work/pan.out" | sed 's/^/        /'
	elif grep -qE '^Warning: Search not completed|max search depth|out of memory|cannot.*memory' "$work/pan.out" && [ -z "$want" ]; then
		bad "$name: $(grep -m1 -E 'pan:1:|max search depth|memory' "$work/pan.out")"
	elif [ -z "$want" ]; then
		grep -q 'errors: 0$' "$work/pan.out" && good "$name" || bad "$name"
	elif grep -qF -- "$want" "$work/pan.out"; then
		good "$name: found out"
	else
		bad "$name: not found out ($(grep -m1 -E 'pan:1|errors:' "$work/pan.out"))"
	fi
	if [ -n "$verbose" ]; then
		grep -E 'states, stored|pan: elapsed|pan:1' "$work/pan.out" | sed 's/^ */        /'
		[ ! -e "$work/$model.pml.trail" ] || (cd "$work" && spin -t -p $flags "$model.pml") | grep -E 'proc|assert' | sed 's/ (state [0-9]*)//'
	fi
done 3< <(rows)

# What a step stands for is said as "folder/file.c function()": it must still be there.
missing=$(cd "$top" && grep -ohE '[a-z]+/[a-z_]+\.[ch] [a-z_0-9]+\(\)(, [a-z_0-9]+\(\))*' spec/models/*.pml | sort -u | while read -r file names; do
	for name in $(echo "$names" | tr -d '(),'); do
		grep -qE "\<$name\(" "$file" || echo "$file has no $name()"
	done
done)
if [ -n "$missing" ]; then
	bad "functions that the models name"
	printf '%s\n' "$missing" | sed 's/^/        /'
else
	good "functions that the models name are there"
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
