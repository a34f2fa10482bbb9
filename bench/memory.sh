#!/bin/bash
# Memory of each idle process of an instance, as PSS (its own share of shared pages), and all together
# against the goal of 15 MB. Needs PINFOLD_INSTANCE (see bench/run.sh).
total=0
printf '%-20s %10s %10s\n' process 'PSS kB' 'private kB'
for p in /proc/[0-9]*; do
	exe=$(readlink "$p/exe" 2>/dev/null) || continue
	case $exe in "$PINFOLD_INSTANCE"/*pinfold-scripted-model | *\(deleted\)) continue ;; "$PINFOLD_INSTANCE"/*pinfold-*) ;; *) continue ;; esac
	pss=$(awk '/^Pss:/ {n = $2} END {print n + 0}' "$p/smaps_rollup")
	private=$(awk '/^Private_(Clean|Dirty):/ {n += $2} END {print n + 0}' "$p/smaps_rollup")
	printf '%-20s %10d %10d\n' "${exe##*/}" "$pss" "$private"
	total=$((total + pss))
done
awk -v t=$total 'BEGIN {printf "all together %d kB = %.2f of the goal of 15000 kB\n", t, t / 15000}'
