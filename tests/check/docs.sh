#!/bin/sh
# The texts agree with the source: every command is in its manual page, links of the
# guides lead somewhere, files and folders that they name exist, and the pages are well-formed.
cd "${srcdir:-.}" || exit 1
bad=0
wrong() {
	echo "$*"
	bad=1
}

for name in $(sed -n 's/^    {"\([a-z]*\)".*/\1/p' cli/main.c); do
	grep -qE "Cm $name\>" man/pinfold.1 || wrong "man/pinfold.1: the command $name is missing"
done
for name in $(awk -F '\t' '$1 == "field" { print $2 } $1 == "event" { print $3 }' spec/audit.tab); do
	grep -qE "^\.(It )?Cm (.* )?$name( |$)" man/pinfold-audit.5 || wrong "man/pinfold-audit.5: $name is missing"
done
for name in $(grep -hoE '(bin|libexec|box)_PROGRAMS \+= .*' */Makefile.inc tests/*/Makefile.inc | grep -v noinst | grep -oE '\<pinfold(-[a-z-]+)?( |$)'); do
	[ -e "man/$name.1" ] || [ -e "man/$name.8" ] || wrong "man/: the program $name has no page"
done
for name in $(grep -hoE '"(run|approval|check|events|model|limit)\.[a-z_]+"' steward/*.c store/*.c | tr -d '"' | sort -u); do
	grep -q "^| .*\`$name\`" docs/streams.md || wrong "docs/streams.md: the event $name is missing"
done
for page in $(sed -n 's/^\.Xr \(pinfold[a-z.-]*\) \([0-9]\).*/\1.\2/p' man/*.[1578] man/*.in | sort -u); do
	[ -e "man/$page" ] || [ -e "man/$page.in" ] || wrong "man/: $page is referred to and does not exist"
done
for text in README.md HACKING.md SECURITY.md CONTRIBUTING.md CHANGELOG.md docs/*.md; do
	for link in $(grep -o '](\([^)]*\))' "$text" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^https\?:'); do
		[ -e "$(dirname "$text")/$link" ] || wrong "$text: $link does not exist"
	done
	for file in $(grep -oE '`(spec|tools|tests|lib|man|docs|runner|handlers|store|steward|sandboxd|gateway|fcgi|agent|cli|etc)/[a-zA-Z0-9_./-]*`' "$text" | tr -d '`'); do
		case $file in *NAME*) continue ;; tests/runner/t_*) file=$file.c ;; esac
		[ -e "$file" ] || wrong "$text: $file does not exist"
	done
done
# Each configuration can be run by its name, and is a real one.
for name in $(tools/ci list | awk '$2 != "part" { print $1 }'); do
	grep -q "^ci_$name()" tools/ci || wrong "tools/ci: its list names $name, which it cannot run"
done
for name in $(sed -n 's/^ci_\([a-z0-9-]*\)().*/\1/p' tools/ci); do
	tools/ci list | grep -q "^$name " || wrong "tools/ci: $name is not in its list, so that nobody can run it"
done
# Every route and every message is in the page that is about them.
awk -F '\t' '/^(public|internal)/ { print $1, $2, $3 }' spec/routes.tab | {
	while read -r side method path; do
		case $side in public) page=api ;; *) page=box ;; esac
		grep -qF -e "$method $path " -e "$method $path," man/pinfold-$page.7 || grep -qE "$method $(printf %s "$path" | sed 's/[{}]/\\&/g')\$" man/pinfold-$page.7 ||
			wrong "man/pinfold-$page.7: $method $path is missing"
	done
	exit $bad
} || bad=1
tmp=$(mktemp -d) || exit 1
protocols=$tmp/pinfold-protocols.7
awk -v src=. -f tools/gen-protocols.awk man/pinfold-protocols.7.in >"$protocols" || bad=1
for name in $(sed -n 's/^msg \([A-Z_]*\) \([0-9]*\) .*/\1:\2/p' spec/*.msg); do
	grep -q "^\.It Cm ${name%:*} No (${name#*:}, " "$protocols" || wrong "man/pinfold-protocols.7: ${name%:*} is missing"
done
awk -v out=man -f tools/gen-conf.awk spec/conf.msg spec/conf.tab man/pinfold.conf.5.in >"$tmp/pinfold.conf.5" || bad=1
if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning man/*.[1578] "$protocols" "$tmp/pinfold.conf.5" || bad=1
fi
rm -rf "$tmp"
exit $bad
