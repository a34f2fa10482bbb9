#!/bin/sh
# What is released at the end of its scope has been made by then; and the checker notices where it has not.
cd "${srcdir:-.}" || exit 1
awk=${AWK:-awk}
find . -name '*.c' ! -path '*/fuzz/corpus/*' ! -path './build*' | sort | xargs "$awk" -f tools/check-own.awk || exit 1
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
while read -r want text; do
	printf 'static void f(void)\n{\n\t%s\n}\n' "$(printf '%s' "$text" | sed 's/|/\n\t/g')" >"$tmp"
	"$awk" -f tools/check-own.awk "$tmp" >/dev/null
	[ $? = "$want" ] || { echo "not $want: $text"; exit 1; }
done <<'T'
1 own_buf struct buf b;|if (done)|	continue;|buf_init(&b, 10);
1 own_buf struct buf a, b;|buf_init(&a, 10);|if (done)|	return;|buf_init(&b, 10);
1 own_free char *p;|if (done)|	return;|p = text();
0 own_buf struct buf a, b;|buf_init(&a, 10);|buf_init(&b, 10);|return;
0 own_free char *p = NULL;|return;
0 own_arena struct arena a;|arena_init(&a, 10);|break;
T
exit 0
