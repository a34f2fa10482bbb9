# Generates the reasons of a run's end from spec/reasons.tab.
#
#   awk -v out=h|c -f tools/gen-reasons.awk spec/reasons.tab
#
# Refused: a name twice, a status that is not terminal, a line without three columns, a status that no reason has.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
BEGIN { FS = "\t"; n = 0 }
/^#/ || /^[ \t]*$/ { next }
NF != 3 { die("name, status, sentence") }
$1 !~ /^[a-z_]+$/ || length($1) > 64 { die("bad name " $1) }
$1 in seen { die("reason " $1 " twice") }
$2 != "completed" && $2 != "failed" && $2 != "cancelled" { die("status " $2 " is not terminal") }
$3 !~ /\.$/ { die("a sentence ends with a full stop") }
{ seen[$1] = 1; name[n] = $1; status[n++] = $2; has[$2] = 1 }
END {
  if (failed) exit 1
  if (!("completed" in has) || !("failed" in has) || !("cancelled" in has)) { printf "%s: a status has no reason\n", FILENAME > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/reasons.tab by tools/gen-reasons.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_REASONS_H\n#define GEN_REASONS_H\n\nenum reason {"
    for (i = 0; i < n; i++) printf "\tREASON_%s,\n", toupper(name[i])
    print "\tREASON__COUNT\n};\n"
    print "/* \"\" for a number that is none. */\nconst char *reason_name(enum reason r);"
    print "/* The public status that a run with it has. */\nconst char *reason_status(enum reason r);"
    print "/* REASON__COUNT: there is none of that name. */\nenum reason reason_find(const char *name);\n#endif"
  } else if (out == "c") {
    print "#include \"gen/reasons.h\"\n#include <stddef.h>\n#include <string.h>\n\nstatic const struct {\n\tconst char *name, *status;\n} rows[REASON__COUNT] = {"
    for (i = 0; i < n; i++) printf "\t[REASON_%s] = {\"%s\", \"%s\"},\n", toupper(name[i]), name[i], status[i]
    print "};\n\nconst char *reason_name(enum reason r)\n{\n\treturn (size_t)r < REASON__COUNT ? rows[r].name : \"\";\n}\n"
    print "const char *reason_status(enum reason r)\n{\n\treturn (size_t)r < REASON__COUNT ? rows[r].status : \"\";\n}\n"
    print "enum reason reason_find(const char *name)\n{\n\tint i = 0;\n\twhile (i < REASON__COUNT && strcmp(name, rows[i].name) != 0)\n\t\ti++;\n\treturn (enum reason)i;\n}"
  } else { print "gen-reasons.awk: out must be h or c" > "/dev/stderr"; exit 1 }
}
