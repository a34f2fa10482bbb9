#!/bin/sh
# run.sh PART...: parts of the page's tests (tests/page/PART.mjs) on a running instance, in one Chromium. The npm packages of
# package-lock.json are installed once a tree. PINFOLD_PAGE_SHOTS: a folder in which pictures stay.
here=$(cd "$(dirname "$0")" && pwd)
store=$here/../../build-npm/page-$(sha256sum <"$here/package-lock.json" | cut -c1-16)
fail() {
	echo "FAIL $*"
	echo "0 passed, 1 failed"
	exit 1
}
command -v chromium >/dev/null || fail "chromium is not installed"
if [ ! -d "$store" ]; then
	mkdir -p "$here/../../build-npm" && made=$(mktemp -d "$here/../../build-npm/new.XXXXXX") || exit 1
	cp "$here/package.json" "$here/package-lock.json" "$made"
	if (cd "$made" && timeout 180 npm ci --no-audit --no-fund --ignore-scripts >log 2>&1 </dev/null); then
		mv -T "$made" "$store" 2>/dev/null || rm -rf "$made"
	else
		tail -n 3 "$made/log"
		rm -rf "$made"
		fail "the npm packages of tests/page/package-lock.json are needed and cannot be installed"
	fi
fi
# A module finds its packages beside itself. Chromium keeps its own files where it is told.
work=$(mktemp -d /tmp/pinfold-page.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
ln -s "$store/node_modules" "$work/node_modules" && cp "$here"/*.mjs "$work" && mkdir -p "$work/tmp" "$work/shots" && cd "$work" || exit 1
export PINFOLD_PAGE_TESTS="$here" PINFOLD_PAGE_WORK="${PINFOLD_PAGE_SHOTS:-$work/shots}" TMPDIR="$work/tmp" HOME="$work/tmp"
timeout 560 node main.mjs "$@"
