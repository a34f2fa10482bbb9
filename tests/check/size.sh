#!/bin/sh
# A file is split before it has 600 lines.
cd "${srcdir:-.}" || exit 1
find . -name '.?*' -prune -o -path './build*' -prune -o -path './autom4te.cache' -prune -o -type f \
	\( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.awk' \) -exec wc -l {} + |
	awk '$2 != "total" && $2 !~ /\/(gen|build-aux)\// && $1 > 600 { print $2 ": " $1 " lines; split it"; bad = 1 } END { exit bad }'
