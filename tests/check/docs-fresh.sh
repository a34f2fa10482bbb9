#!/bin/sh
# docs/errors.md, docs/api.md, docs/metrics.md and docs/walls.md are what the tables make today.
cd "${srcdir:-.}" || exit 1
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
fresh() { # document
	if ! cmp -s "$tmp/new.md" "docs/$1"; then
		echo "docs/$1 is not what the tables in spec/ make: run \"make docs\" and commit it"
		diff "docs/$1" "$tmp/new.md" | head -n 10
		bad=1
	fi
}
$awk -v out=md -f tools/gen-errors.awk spec/errors.tab >"$tmp/new.md" || bad=1
fresh errors.md
$awk -v out=md -f tools/gen-openapi.awk spec/errors.tab spec/routes.tab spec/schema.tab spec/limits.tab spec/reasons.tab spec/responses.tab >"$tmp/new.md" || bad=1
fresh api.md
$awk -v out=md -f tools/gen-metrics.awk spec/metrics.tab >"$tmp/new.md" || bad=1
fresh metrics.md
for t in walls seccomp; do $awk -v out=md -f tools/gen-$t.awk spec/$t.tab || bad=1; done >"$tmp/new.md"
fresh walls.md
exit $bad
