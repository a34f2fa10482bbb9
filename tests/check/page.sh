#!/bin/bash
# The page's source: it parses, what needs no browser does what it says, nothing in it makes markup out of text or is
# fetched from elsewhere, each of its files is installed and kept by its service worker, and all web servers send one policy.
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd) || exit 1
command -v node >/dev/null || { echo "no node"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
wrong() { echo "$*"; bad=1; }

# Modules, for any node: an older one takes .js for something else unless it is told.
mkdir -p "$work/tests" && cp -r "$top/web" "$top/spec" "$work" && cp -r "$top/tests/page" "$work/tests" || exit 1
chmod -R u+w "$work" && echo '{"type": "module"}' >"$work/package.json"
for f in "$work"/web/*.js "$work"/web/page/*.js; do node --check "$f" || wrong "${f#"$work"/} does not parse"; done
node --test "$work/tests/page/unit.mjs" >"$work/out" 2>&1 || { cat "$work/out"; wrong "tests/page/unit.mjs"; }

cd "$top/web" || exit 1
grep -nE 'innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|DOMParser|createContextual|srcdoc|setHTML|\.style\b|localStorage|sessionStorage' ./*.js page/*.js &&
	wrong "text must go in as text, and nothing is kept"
grep -nE 'createElement|setAttribute\(name' page/*.js | grep -v '^page/dom.js:' && wrong "elements are made in dom.js alone"
grep -nE '<style|<script>|style=| on[a-z]+="|https?://' index.html manifest.webmanifest page/style.css && wrong "nothing inline, and nothing of another host"
grep -nE '(href|src)="/|"/(page|v1|sw)' ./*.js page/*.js index.html manifest.webmanifest && wrong "addresses are relative to the page"
for f in index.html sw.js manifest.webmanifest page/*; do
	grep -qF "web/$f" Makefile.inc || wrong "$f is not installed"
	case $f in
	sw.js | page/icon-512.png) ;;
	index.html) grep -qF '"./"' sw.js || wrong "$f is not kept" ;;
	page/*.js) grep -qF "\"$(basename "$f" .js)\"" sw.js || wrong "$f is not kept" ;;
	*) grep -qF "\"$f\"" sw.js || wrong "$f is not kept" ;;
	esac
done
policies=$(grep -ohE "default-src [^\"]*" "$top"/etc/web-servers/*.conf | sort | uniq -c)
case $policies in *3\ default-src*) ;; *) wrong "the policies differ: $policies" ;; esac
exit $bad
