# Generates the tables against which JSON bodies are checked, from spec/schema.tab (tab separated).
#
#   awk -v out=h|c -f tools/gen-schema.awk spec/errors.tab spec/schema.tab
#
# The first file is the error table: a row may only name an error that is in it.
# A line: body, field, type, required (yes|no), min, max, maxbytes, error, and optionally the error of a
# value that has more bytes than maxbytes. "-" is no bound.
# Refused: unknown types and errors, a field twice, a field whose parent has no row or cannot hold it.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function bound(s, none) { return s == "-" ? none : s }
BEGIN { FS = "\t"; k = split("string object array integer bool any map", a, " "); for (i = 1; i <= k; i++) types[a[i]] = 1 }
FNR == 1 { nfile++ }
/^#/ || /^[ \t]*$/ { next }
nfile == 1 { if ($2 != "dropped") error[$2] = 1; next }
{
  if (NF != 8 && NF != 9) die("eight or nine columns, separated by one tab each, not " NF)
  if ($1 !~ /^[a-z][a-z0-9_]*$/) die("bad body " $1)
  if ($2 !~ /^[a-zA-Z][a-zA-Z0-9_]*((\[\])|(\.[a-zA-Z][a-zA-Z0-9_]*))*$/) die("bad field " $2)
  if (($1, $2) in type) die($1 " " $2 " twice")
  if (!($3 in types)) die("unknown type " $3)
  if ($4 != "yes" && $4 != "no") die("required must be yes or no")
  for (i = 5; i <= 7; i++) if ($i !~ /^(-|-?[0-9]+)$/) die("a bound is a whole number or -, not " $i)
  if ($7 ~ /^-[0-9]/ || $7 == "0") die("maxbytes is above 0")
  if ($5 != "-" && $6 != "-" && $5 + 0 > $6 + 0) die("min is above max")
  if ($3 == "array" && $6 == "-") die("an array needs a maximum")
  if ($3 == "string" && $6 == "-" && $7 == "-") die("a string needs a maximum")
  if (!($8 in error)) die("unknown error " $8)
  if (NF == 9 && !($9 in error)) die("unknown error " $9)
  if (NF == 9 && $7 == "-") die("an error for too many bytes, but no maxbytes")
  parent = $2
  if (sub(/\[\]$/, "", parent)) { if (type[$1, parent] != "array") die($2 " is not in an array") }
  else if (sub(/\.[a-zA-Z0-9_]+$/, "", parent)) { if (type[$1, parent] != "object" && type[$1, parent] != "map") die($2 " is not in an object") }
  if ($1 != last) { if ($1 in body) die("the rows of " $1 " are not together"); body[$1] = 1; bodies[nb++] = $1; last = $1 }
  type[$1, $2] = $3
  rows[$1] = rows[$1] sprintf("\t{.field = \"%s\", .type = SCHEMA_%s, .required = %s, .min = %s, .max = %s, .maxbytes = %s, .error = ERR_%s%s},\n", \
    $2, toupper($3), ($4 == "yes" ? "true" : "false"), bound($5, "INT64_MIN"), bound($6, "INT64_MAX"), bound($7, "0"), toupper($8), (NF == 9 ? ", .too_large = ERR_" toupper($9) : ""))
}
END {
  if (failed) exit 1
  if (!nb) { print FILENAME ": no rows" > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/schema.tab by tools/gen-schema.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_SCHEMA_H\n#define GEN_SCHEMA_H\n#include \"lib/schema.h\"\n"
    for (i = 0; i < nb; i++) printf "extern const struct schema schema_%s;\n", bodies[i]
    print "/* Each of them; ends with NULL. */\nextern const struct schema *const schema_all[];"
    print "#endif"
  } else if (out == "c") {
    print "#include \"gen/schema.h\""
    for (i = 0; i < nb; i++) {
      printf "\nstatic const struct schema_row rows_%s[] = {\n%s\t{.field = NULL},\n};\n", bodies[i], rows[bodies[i]]
      printf "const struct schema schema_%s = {\"%s\", rows_%s};\n", bodies[i], bodies[i], bodies[i]
    }
    printf "\nconst struct schema *const schema_all[] = {\n"
    for (i = 0; i < nb; i++) printf "\t&schema_%s,\n", bodies[i]
    print "\tNULL,\n};"
  } else { print "gen-schema.awk: out must be h or c" > "/dev/stderr"; exit 1 }
}
