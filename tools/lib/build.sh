# Building the tree into a folder of its own. Sourced by quickstart and the checks.

# build_tree DIR [configure options]: configures when needed, builds, and makes ./pinfold the CLI of the build.
# Without options a folder stays as it was configured: the instance of a sanitized build is a sanitized one.
build_tree() {
	local dir=$1 log=$1/build.log stamp
	shift
	mkdir -p "$dir" || return 1
	(
		flock 9
		# The source folder is everybody's.
		exec 8<"$top/configure.ac" && flock 8
		if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ] || [ ! -e "$top/Makefile.in" ]; then
			say "preparing the build system"
			(cd "$top" && autoreconf -fi) >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
		fi
		exec 8<&-
		stamp="$dir/configured-with"
		if [ ! -e "$dir/Makefile" ] || { [ $# -gt 0 ] && [ "$(cat "$stamp" 2>/dev/null)" != "$*" ]; }; then
			say "configuring ($dir)"
			# By a relative name: configure refuses a source folder with a space in its path.
			(cd "$dir" && "$(realpath --relative-to=. "$top")/configure" --prefix=/usr --sysconfdir=/etc --localstatedir=/var --libexecdir=/usr/libexec "$@") >"$log" 2>&1 || {
				tail -n 20 "$log" >&2
				exit 1
			}
			tail -n 5 "$log" >&2
			printf '%s' "$*" >"$stamp"
		fi
		say "building ($dir)"
		timeout -k 10 1800 make -C "$dir" -j"$(nproc)" >"$log" 2>&1 || {
			grep -E 'error|Error|warning' "$log" | head -n 20 >&2
			say "quickstart: the build failed; all of it is in $log"
			exit 1
		}
	) 9>"$dir/.lock" || return 1
	ln -sfn "${dir#"$top"/}/cli/pinfold" "$top/pinfold"
}
