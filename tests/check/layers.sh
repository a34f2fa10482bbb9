#!/bin/sh
# No file includes what LAYERS does not grant its folder; and the checker itself notices when one does.
src=$(cd "${srcdir:-.}" && pwd)
build=$(pwd)
awk=${AWK:-awk}
cd "$src" || exit 1
folders=$(sed 's/#.*//' LAYERS | awk 'NF { print $1 }')
files=$(for f in $folders; do [ -d "$f" ] && [ "$f" != gen ] && find "$f" -name '*.[ch]'; done | sort)
[ -n "$files" ] || { echo "no source files in $src"; exit 1; }
$awk -f tools/check-layers.awk LAYERS $files || exit 1
if [ -d "$build/gen" ]; then
	cd "$build" && $awk -f "$src/tools/check-layers.awk" "$src/LAYERS" $(find gen -name '*.[ch]' ! -name '*_test.c' ! -name '*_fuzz.c' ! -name '*_stub.c') || exit 1
fi

# The checker has to refuse each of these.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
mkdir lib fcgi nowhere
refused() { # file, text
	printf '%s\n' "$2" >"$1"
	if $awk -f "$src/tools/check-layers.awk" "$src/LAYERS" "$1" >/dev/null; then
		echo "not refused: $2 in $1"
		exit 1
	fi
	rm "$1"
}
refused lib/a.c '#include "fcgi/main.h"'
refused lib/a.c '#include "buf.h"'
refused lib/a.c '#include "../fcgi/main.h"'
refused lib/a.c '# include <db.h>'
refused fcgi/a.c '#include <curl/curl.h>'
refused fcgi/a.c '#include <sqlite3.h>'
refused fcgi/a.c '#include "gateway/upstream.h"'
refused fcgi/a.c '#include HEADER'
refused nowhere/a.c 'int x;'
printf '#include "lib/buf.h"\n#include <fcgiapp.h>\n#include <sys/stat.h>\n#include "config.h"\n' >fcgi/ok.c
$awk -f "$src/tools/check-layers.awk" "$src/LAYERS" fcgi/ok.c || exit 1
