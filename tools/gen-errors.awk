# Generates the error table from spec/errors.tab (tab separated).
#
#   awk -v out=h|c|md -f tools/gen-errors.awk spec/errors.tab
#
# A line: number, code, HTTP status, retry (yes|no), sentence. The code "dropped" only keeps a number.
# Refused: a number or code used twice, an unknown status, a retry that is neither yes nor no, no sentence.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function quote(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
BEGIN {
  FS = "\t"; n = 0
  k = split("400 401 403 404 405 408 409 410 413 415 422 429 500 501 502 503 504 507", a, " ")
  for (i = 1; i <= k; i++) known[a[i]] = 1
}
/^#/ || /^[ \t]*$/ { next }
{
  if ($1 !~ /^[0-9]+$/ || $1 < 1 || $1 > 999) die("bad number " $1)
  if ($1 in number) die("number " $1 " of " $2 " is already " number[$1])
  number[$1] = $2
  if ($1 + 0 > last) last = $1 + 0
  if ($2 == "dropped") next
  if (NF != 5) die("number, code, status, retry, sentence, separated by one tab each")
  if ($2 !~ /^[a-z][a-z0-9_]*$/ || length($2) > 63) die("bad code " $2)
  if ($2 == "ok" || $2 in code) die("code " $2 " used twice")
  if (!($3 in known)) die("unknown status " $3)
  if ($4 != "yes" && $4 != "no") die("retry must be yes or no")
  if ($5 == "") die("no sentence")
  code[$2] = 1
  num[n] = $1; name[n] = $2; status[n] = $3; retry[n] = ($4 == "yes" ? "true" : "false"); sentence[n] = $5; n++
}
END {
  if (failed) exit 1
  if (!n) { print FILENAME ": no errors" > "/dev/stderr"; exit 1 }
  if (out == "md") {
    print "# Error codes\n\nMade from `spec/errors.tab` by `make docs`; change that. An error answer is"
    print "`{\"error\":\"code\",\"message\":\"...\",\"field\":\"...\",\"requestId\":\"...\"}`, `field` only where one place is at fault; or the code is"
    print "the `error` of a run. \"Again\": the same request may succeed later without being changed. Which route answers what:"
    print "[api.md](api.md).\n\n| code | status | again | what to do |\n| --- | --- | --- | --- |"
    for (i = 0; i < n; i++) { s = sentence[i]; gsub(/\|/, "\\|", s); printf "| `%s` | %d | %s | %s |\n", name[i], status[i], (retry[i] == "true" ? "yes" : "no"), s }
    exit
  }
  print "/* Generated from spec/errors.tab by tools/gen-errors.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_ERRORS_H\n#define GEN_ERRORS_H\n#include <stdbool.h>\n#include <stdint.h>\n\nenum err {\n\tERR_OK = 0,"
    for (i = 0; i < n; i++) printf "\tERR_%s = %d,\n", toupper(name[i]), num[i]
    print "};\n\nstruct err_row {\n\tconst char *code;\n\tuint16_t status; /* of HTTP */\n\tbool retry;\n\tconst char *sentence;\n};\n"
    print "/* Never NULL: an unknown number is internal_error. */\nconst struct err_row *err_row(enum err e);\nconst char *err_code(enum err e);"
    print "/* The number of a code; an unknown one is ERR_INTERNAL_ERROR. */\nenum err err_find(const char *code);\n#endif"
  } else if (out == "c") {
    print "#include \"gen/errors.h\"\n#include <stddef.h>\n#include <string.h>\n"
    print "static const struct err_row rows[] = {\n\t[ERR_OK] = {\"ok\", 200, false, \"\"},"
    for (i = 0; i < n; i++) printf "\t[ERR_%s] = {\"%s\", %d, %s, %s},\n", toupper(name[i]), name[i], status[i], retry[i], quote(sentence[i])
    print "};\n\nconst struct err_row *err_row(enum err e)\n{\n\tsize_t i = (size_t)e;\n\tif (i >= sizeof rows / sizeof rows[0] || rows[i].code == NULL)\n\t\ti = ERR_INTERNAL_ERROR;\n\treturn &rows[i];\n}\n"
    print "const char *err_code(enum err e)\n{\n\treturn err_row(e)->code;\n}\n"
    print "enum err err_find(const char *code)\n{\n\tfor (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)\n\t\tif (rows[i].code != NULL && strcmp(rows[i].code, code) == 0)\n\t\t\treturn (enum err)i;\n\treturn ERR_INTERNAL_ERROR;\n}"
  } else { print "gen-errors.awk: out must be h, c or md" > "/dev/stderr"; exit 1 }
}
