#!/bin/sh
# The service against its own description, by tools from npm, which are installed once a tree.
here=$(cd "$(dirname "$0")" && pwd)
packages="openapi-backend@5.10.6 @seriousme/openapi-schema-validator@2.2.5"
store=$here/../../build-npm/openapi-5.10.6-2.2.5
if [ ! -d "$store" ]; then
	mkdir -p "$here/../../build-npm" && made=$(mktemp -d "$here/../../build-npm/new.XXXXXX") || exit 1
	if timeout 180 npm install --no-audit --no-fund --ignore-scripts --prefix "$made" $packages >"$made/log" 2>&1 </dev/null; then
		mv -T "$made" "$store" 2>/dev/null || rm -rf "$made"
	else
		tail -n 3 "$made/log"
		rm -rf "$made"
		echo "FAIL the npm packages $packages are needed and cannot be installed"
		echo "0 passed, 1 failed"
		exit 1
	fi
fi
# A module finds its packages beside itself.
work=$(mktemp -d /tmp/pinfold-openapi.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
ln -s "$store/node_modules" "$work/node_modules" && cp "$here/openapi.mjs" "$work" && cd "$work" || exit 1
timeout 400 node openapi.mjs
