# Debian packages that Pinfold needs, installed only where missing. Sourced by quickstart.

packages_base="build-essential autoconf automake pkg-config libfcgi-dev libssl-dev libdb5.3-dev libyajl-dev libunistring-dev libidn2-dev
	libcurl4-openssl-dev libmicrohttpd-dev libconfuse-dev libqrencode-dev libgit2-dev libarchive-dev libseccomp-dev libcap-ng-dev libcmocka-dev
	lighttpd git python3 curl ca-certificates util-linux procps"
# Apache's programs without its service: an instance runs its own.
packages_lighttpd=lighttpd packages_apache=apache2-bin packages_nginx=nginx
# The last two are what the store is measured against: only bench/engines is linked with them.
packages_bench="apache2-bin nginx wrk bubblewrap libsqlite3-dev liblmdb-dev"
packages_check="psmisc apache2-bin nginx python3-pytest clang clang-format libclang-rt-14-dev cppcheck bubblewrap binutils iproute2 mandoc
	shellcheck codespell spin chromium zstd"
packages_long="valgrind clang-tidy tcc libsqlite3-dev liblmdb-dev qemu-system-x86 mmdebstrap e2fsprogs debian-archive-keyring"
# Some tests need npm packages: published cases, and what drives a browser; a bench, another gateway. Any npm will do, not only Debian's.
command -v npm >/dev/null || packages_check="$packages_check nodejs npm" packages_bench="$packages_bench nodejs npm"

# A package that starts a service when installed must not take port 80 from anybody here.
packages_quietly() {
	local policy=/usr/sbin/policy-rc.d mine=no status name
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && mine=yes
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1
	status=$?
	[ "$mine" = no ] || rm -f "$policy"
	# Nor at the next start of the machine: an instance runs web servers of its own.
	for name in lighttpd nginx; do
		case " $* " in *" $name "*) systemctl disable "$name" >/dev/null 2>&1 ;; esac
	done
	return $status
}

# install_packages SET...: installs what is missing of these sets.
install_packages() {
	local set name missing= log
	for set; do
		local list="packages_$set"
		for name in ${!list}; do
			case $(dpkg-query -W -f='${Status}' "$name" 2>/dev/null) in
			*" installed") ;;
			*) missing="$missing $name" ;;
			esac
		done
	done
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || stop_with "this is not a Debian machine; install the counterparts of:$missing"
	say "installing Debian packages:$missing"
	log=$(mktemp) || return 1
	# The lists may be absent or old on a fresh machine; an install that fails is tried once more after an update.
	if ! packages_quietly $missing; then
		say "  (refreshing the package lists first)"
		apt-get update -q >"$log" 2>&1 && packages_quietly $missing || {
			tail -n 20 "$log" >&2
			rm -f "$log"
			stop_with "the packages could not be installed; the lines above say why"
		}
	fi
	rm -f "$log"
}
