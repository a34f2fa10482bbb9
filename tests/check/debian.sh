#!/bin/sh
# debian/ is in step with the tree: one version, what configure asks for is what it is built with and what quickstart installs, one
# licence, the users that there are, and the form of the store.
cd "${srcdir:-.}" || exit 1
bad=0
wrong() {
	echo "$*"
	bad=1
}
version=$(sed -n 's/^AC_INIT(\[pinfold\], \[\(.*\)\])$/\1/p' configure.ac)
case $(sed -n '1s/^pinfold (\(.*\)) .*/\1/p' debian/changelog) in
"$version" | "$version~"* | "$version+"*) ;;
*) wrong "debian/changelog and configure.ac name different versions" ;;
esac
for name in $(grep -oE '\[lib[a-z0-9.-]+-dev\]' configure.ac | tr -d '[]' | sort -u) $(grep -oE 'package lib[a-z0-9.-]+-dev' configure.ac | cut -d' ' -f2 | sort -u); do
	grep -qE "^ $name( |,|$)" debian/control || wrong "debian/control: not built with $name, which configure asks for"
	grep -qwF -- "$name" tools/lib/packages.sh || wrong "tools/lib/packages.sh: $name is missing"
done
[ "$(sed '1,/^$/d' COPYING | grep .)" = "$(sed '1,/^$/d' debian/copyright | sed '1,/^License: ISC$/d; s/^ \.$//; s/^ //' | sed '1,/^License: ISC$/d' | grep .)" ] ||
	wrong "debian/copyright: not the licence of COPYING"
# Purged, it takes the users that sysusers.d makes; its own form of the store is what preinst compares.
[ "$(sed -n 's/^u \([a-z-]*\) .*/\1/p' etc/systemd/sysusers.conf | xargs)" = "$(sed -n 's/.*for user in \(.*\); do$/\1/p' debian/pinfold.postrm)" ] ||
	wrong "debian/pinfold.postrm: not the users of etc/systemd/sysusers.conf"
[ "$(sed -n 's/.*SCHEMA = \([0-9]*\).*/\1/p' store/upgrade.h | grep -cE '^[0-9]+$')" = 1 ] || wrong "store/upgrade.h: debian/rules does not find the form of the store"
exit $bad
