#!/bin/bash
# Which lines no test reaches: builds with gcc's counters into build-coverage, runs the unit, runner, store, steward, box,
# gateway and fcgi tests, and writes build-coverage/report.txt: a line a file with its share, worst first, then
# the lines themselves. Fails only if the tests do: a share is something to read, not to reach.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
dir=$top/build-coverage
say() { printf '%s\n' "$*" >&2; }
stop_with() { say "coverage: $*"; exit 1; }
# shellcheck source=tools/lib/build.sh
. "$top/tools/lib/build.sh"
command -v gcov >/dev/null || stop_with "gcov is missing: install the Debian package gcc"
build_tree "$dir" CC=gcc --enable-coverage || exit 1
# Each role counts under its own uid, so its files must be open to all.
umask 0
find "$dir" -name '*.gcda' -delete
find "$dir" -name '*.gcno' -exec sh -c 'for f; do : >"${f%.gcno}.gcda"; done' - {} +
find "$dir" -type d -exec chmod 777 {} +
make -C "$dir" -k check -j"$(nproc)" >"$dir/check.log" 2>&1
status=$?
umask 022

# gcov's lines, summed over the programs that hold a source: reached is reached in any of them.
(cd "$dir" && find . -name '*.gcda' -size +0 | grep -v '^./tests' | xargs -n 40 gcov -p -t 2>/dev/null) | awk -v top="$top/" '
	{ sub(/^ */, "") }
	$0 ~ /^-: *0:Source:/ { sub(/^-: *0:Source:/, ""); f = $0; sub(/^\.\.\//, "", f); if (index(f, top) == 1) f = substr(f, length(top) + 1)
		keep = f ~ /^(lib|handlers|fcgi|gateway|store|steward|sandboxd|agent|cli)\/.*\.[ch]$/; next }
	!keep { next }
	{ i = index($0, ":"); count = substr($0, 1, i - 1); rest = substr($0, i + 1); j = index(rest, ":"); n = substr(rest, 1, j - 1) + 0
		if (n == 0 || count == "-") next
		k = f SUBSEP n; if (!(k in text)) { text[k] = substr(rest, j + 1); lines[f]++; last[f] = n > last[f] ? n : last[f] }
		if (count !~ /^[#=]/ && !(k in hit)) { hit[k] = 1; hits[f]++ } }
	END {
		for (f in lines) { all += lines[f]; got += hits[f]; printf "%06.2f %s %d of %d\n", 100 * hits[f] / lines[f], f, hits[f], lines[f] | "sort" }
		close("sort")
		printf "in all: %d of %d lines, %.1f %%\n", got, all, 100 * got / all
		for (f in lines) for (n = 1; n <= last[f]; n++) { k = f SUBSEP n; if ((k in text) && !(k in hit)) printf "%s:%d:%s\n", f, n, text[k] | "sort -t: -k1,1 -k2,2n" }
	}' >"$dir/report.txt"
grep '^in all' "$dir/report.txt"
awk '/^[01]/ && n++ < 15' "$dir/report.txt"
grep -E '^# (PASS|FAIL|SKIP|ERROR)' "$dir/check.log"
[ $status -eq 0 ] && grep -q '^in all: [1-9]' "$dir/report.txt"
