#!/bin/sh
# Checks which libraries each program of a finished build needs.
#
#   tools/check-link.sh [BUILD-FOLDER]
#
# A line below: program, then the libraries it may need. Anything else is refused: a library that is only
# linked and not used is also code in that process. Exit 0 all is well, 1 not, 77 a build with sanitizers.
build=${1:-.}
bad=0
checked=0
while read -r name may; do
	case $name in '' | '#'*) continue ;; esac
	file=$(find "$build" -name .libs -prune -o -type f -name "$name" -perm -u+x -print | head -n 1)
	if [ -z "$file" ]; then
		echo "$name: not built"
		bad=1
		continue
	fi
	needed=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	case $needed in *libasan* | *libubsan* | *libtsan* | *libclang_rt*)
		echo "$name: built with sanitizers, not checked"
		exit 77
		;;
	esac
	checked=$((checked + 1))
	# Of the fault harness (tests/fault/shim.c).
	if grep -q 'pinfold fault build' "$file"; then
		echo "$name: holds the shim of the fault harness"
		bad=1
	fi
	for lib in $needed; do
		short=${lib%%.so*}
		case " libc ld-linux-x86-64 ld-linux-aarch64 $may " in
		*" $short "*) ;;
		*)
			echo "$name: may not link $lib"
			bad=1
			;;
		esac
	done
done <<'LIST'
# Root: the C library alone.
pinfold-sandboxd
pinfold-runner
# Each library is linked by the one process whose business it is.
pinfold-stored   libdb-5.3 libcrypto libyajl
pinfold-fcgi     libfcgi libcrypto libyajl libunistring
pinfold-gateway  libmicrohttpd libcurl libcrypto libyajl libunistring libidn2
pinfold-steward  libgit2 libcrypto libyajl libunistring
pinfold-push     libcurl libcrypto
pinfold-conf     libconfuse libcrypto libunistring
pinfold-agent    libcurl libyajl libcrypto
pinfold-bridge   libcurl libyajl libcrypto
pinfold-unpack   libarchive
pinfold          libcurl libarchive libconfuse libqrencode libcrypto libyajl libunistring
LIST
for file in "$build"/tests/fault/faulty-*; do
	case $file in *.o | *'*'*) continue ;; esac
	grep -q 'pinfold fault build' "$file" || { echo "$file: lacks the shim, by which it would be found"; bad=1; }
done
echo "$checked programs checked"
exit $bad
