#!/bin/bash
# Every test, in the conditions that matter: the short list, or the long one of what takes longer. The lists and
# what each does are in tools/ci. Ends with one line: N passed, N failed.
case ${1-} in
short | long) exec "$(dirname "$0")/ci" "$1" ;;
*)
	echo "usage: tools/check.sh short|long" >&2
	exit 2
	;;
esac
