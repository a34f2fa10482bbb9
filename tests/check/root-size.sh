#!/bin/bash
# How much code runs as root: the sources of pinfold-sandboxd, with what it links of lib and every header of ours that these
# include. What is generated from the tables is not counted. The number can only fall: whoever needs a line takes one away.
most=4534
src=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
program=sandboxd/pinfold-sandboxd
[ -f $program ] || { echo "skipped: there is no $program here"; exit 77; }
# The compilation units that the linker took, by the debugger's information.
files=$(readelf --debug-dump=info --dwarf-depth=1 $program 2>/dev/null | grep -oE '(sandboxd|lib)/[a-z_0-9]+\.c$' | sort -u)
[ -n "$files" ] || { echo "skipped: $program has no debugging information"; exit 77; }
cd "$src" || exit 1
while :; do
	more=$(for f in $files; do sed -nE 's,^#include "((sandboxd|lib)/[^"]*)".*,\1,p' "$f"; done)
	more=$(printf '%s\n' $files $more | sort -u)
	[ "$more" = "$files" ] && break
	files=$more
done
lines=$(cat $files | wc -l)
code=$(for f in $files; do gcc -fpreprocessed -dD -E -P "$f" 2>/dev/null; done | grep -c '[^[:space:]]')
echo "$lines lines in $(wc -w <<<"$files") files ($(cat $(grep ^lib <<<"$files") | wc -l) of lib); $code without blank lines and comments; at most $most"
[ "$lines" -le $most ] || { echo "FAIL code that runs as root has grown: see what can go elsewhere"; exit 1; }
[ "$lines" -gt $((most - 40)) ] || { echo "FAIL it is less than before: write $lines into $0, so that it stays"; exit 1; }
