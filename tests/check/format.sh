#!/bin/sh
# Every C file is as clang-format leaves it. 77: no clang-format here.
cd "${srcdir:-.}" || exit 1
tool=
for t in clang-format-14 clang-format; do command -v $t >/dev/null && tool=$t && break; done
[ -n "$tool" ] || { echo "clang-format is missing: install the Debian package clang-format-14"; exit 77; }
files=$(git ls-files '*.c' '*.h' 2>/dev/null)
[ -n "$files" ] || files=$(find . -name '*.[ch]' ! -path '*/gen/*' ! -name config.h)
$tool --dry-run -Werror $files
