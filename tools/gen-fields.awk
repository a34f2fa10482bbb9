# Generates the tables of model requests from spec/fields.tab (tab separated).
#
#   awk -v out=h|c -f tools/gen-fields.awk spec/fields.tab
#
# A line: format, place or place/type, fields behind commas, action, argument. See the table's head.
# Refused: unknown formats and actions, a field twice in one object, a place that is named and not there, one that is there
# and never named, an argument where none belongs or none where one does.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function quote(s) { return "\"" s "\"" }
# The number of a place, made where it is new.
function place(format, name) {
  if (!((format, name) in number)) { number[format, name] = np; pformat[np] = format; pname[np] = name; np++ }
  return number[format, name]
}
# Upper case, "_" and "-" do not count in what is for all.
function plain(s) { s = tolower(s); gsub(/[_-]/, "", s); return s }
BEGIN {
  FS = "\t"
  k = split("text number bool any data list object either word url blob model stream cap effort thinking budget cache force always only among keep strip reject", a, " ")
  for (i = 1; i <= k; i++) { actions[a[i]] = 1; order[i] = a[i] }
  nactions = k
  k = split("list object either word thinking", a, " "); for (i = 1; i <= k; i++) leads[a[i]] = 1
  k = split("force always only among keep", a, " "); for (i = 1; i <= k; i++) says[a[i]] = 1
  nfmt = k = split("chat responses messages gemini", fmt, " "); for (i = 1; i <= k; i++) formats[fmt[i]] = 1
  np = 0; nall = 0; ntypes = 0
}
/^#/ || /^[ \t]*$/ { next }
{
  if (NF != 5) die("five columns, separated by one tab each, not " NF)
  n = split($3, field, ",")
  if ($1 == "*") {
    if ($2 != "*" && $2 != "*/type") die("what is for all has the place * or */type")
    if ($4 != "reject" && $4 != "strip") die("what is for all is refused or left out")
    if ($5 != "-") die("no argument belongs here")
    for (i = 1; i <= n; i++) {
      if (field[i] !~ /^[a-z][a-z_]*\*?$/) die("bad name " field[i])
      if (($2, plain(field[i])) in seen) die(field[i] " twice")
      seen[$2, plain(field[i])] = 1
      if ($2 == "*") { if (field[i] ~ /\*/) die("a field has no *"); all[nall] = "{" quote(plain(field[i])) ", FIELD_" toupper($4) "}"; nall++ }
      else types[ntypes++] = plain(field[i])
    }
    next
  }
  if (!($1 in formats)) die("unknown format " $1)
  if ($2 !~ /^[a-z]+(\/([a-z0-9_]+|-))?$/) die("bad place " $2)
  k = split($2, part, "/"); kind = k == 2 ? part[2] : ""
  p = place($1, part[1]); there[p] = 1; line[p] = FNR
  if (k == 2) typed[p] = 1; else untyped[p] = 1
  if (typed[p] && untyped[p]) die(part[1] " has a type in some rows and none in others")
  v = p SUBSEP kind
  if (!(v in variant)) { variant[v] = 1; kinds[p, nkinds[p] + 0] = kind; nkinds[p]++; nrules[v] = 0 }
  if ($3 == "-") { if ($4 != "-" || $5 != "-" || k != 2) die("a type without fields has - in all columns"); next }
  if (!($4 in actions)) die("unknown action " $4)
  to = -1; words = ""
  if ($4 in leads) {
    target = $5
    if ($4 == "word") { if ($5 !~ /^[a-z]+=[a-z_]+(\|[a-z_]+)*$/) die("a word needs PLACE=a|b"); split($5, b, "="); target = b[1]; words = "|" b[2] "|" }
    else if ($5 !~ /^[a-z]+$/) die($4 " needs a place")
    to = place($1, target); named[to] = 1; if (!(to in from)) from[to] = FNR
  } else if ($4 in says) {
    if ($5 == "-") die($4 " needs an argument")
    words = ($4 == "only" || $4 == "among" || $4 == "keep") ? "|" $5 "|" : $5
  } else if ($5 != "-") die("no argument belongs to " $4)
  for (i = 1; i <= n; i++) {
    if (field[i] == "*") { if ($4 != "reject" || n > 1) die("what else there is can but be refused, in a row of its own") }
    else if (field[i] !~ /^[a-z][a-z0-9_]*$/) die("bad field " field[i])
    if (field[i] == "type" && k == 2) die("the type stands in the place")
    if ((v, field[i]) in seen) die($2 " " field[i] " twice")
    seen[v, field[i]] = 1
    rules[v, nrules[v]++] = "{" quote(field[i]) ", FIELD_" toupper($4) ", " to ", " quote(words) "}"
  }
}
END {
  if (failed) exit 1
  for (i = 0; i < np; i++) {
    if (!there[i]) { printf "%s:%d: no rows are of %s %s\n", FILENAME, from[i], pformat[i], pname[i] > "/dev/stderr"; exit 1 }
    if (!named[i] && pname[i] != "top" && pname[i] != "count") { printf "%s:%d: nothing leads to %s %s\n", FILENAME, line[i], pformat[i], pname[i] > "/dev/stderr"; exit 1 }
  }
  for (i = 1; i <= nfmt; i++) if (!((fmt[i], "top") in number)) { print FILENAME ": " fmt[i] " has no top" > "/dev/stderr"; exit 1 }
  if (!(("messages", "count") in number) || !(("gemini", "count") in number) || !nall || !ntypes) { print FILENAME ": rows are missing" > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/fields.tab by tools/gen-fields.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_FIELDS_H\n#define GEN_FIELDS_H\n#include <stdbool.h>\n#include <stdint.h>\n"
    printf "enum field_action {"
    for (i = 1; i <= nactions; i++) printf "%s FIELD_%s", (i > 1 ? "," : ""), toupper(order[i])
    print " };\n"
    print "struct field_rule {\n\tconst char *field;\n\tuint8_t action;    /* enum field_action */\n\tint16_t place;     /* where it leads; -1: nowhere */\n\tconst char *words; /* \"|a|b|\", or a value */\n};"
    print "/* An object of one type; \"\" where it has none. */\nstruct field_object {\n\tconst char *type;\n\tconst struct field_rule *rules; /* ends with field NULL */\n};"
    print "struct field_place {\n\tconst char *format, *name;\n\tbool typed;\n\tconst struct field_object *objects; /* ends with type NULL */\n};"
    print "extern const struct field_place field_places[]; /* ends with name NULL */"
    printf "enum {"
    for (i = 1; i <= nfmt; i++) printf " FIELDS_%s = %d,", toupper(fmt[i]), number[fmt[i], "top"]
    printf " FIELDS_COUNT_TOKENS = %d, FIELDS_GEMINI_COUNT = %d };\n", number["messages", "count"], number["gemini", "count"]
    print "/* In every object, as plain: lower case, without \"_\" and \"-\". Ends with field NULL. */"
    print "struct field_denied {\n\tconst char *field;\n\tuint8_t action;\n};\nextern const struct field_denied fields_denied[];"
    print "/* What no object may be, plain as well; one that ends with \"*\" is a beginning. Ends with NULL. */\nextern const char *const types_denied[];"
    print "#endif"
  } else if (out == "c") {
    print "#include \"gen/fields.h\"\n#include <stddef.h>\n"
    for (i = 0; i < np; i++) {
      for (j = 0; j < nkinds[i]; j++) {
        v = i SUBSEP kinds[i, j]
        printf "static const struct field_rule rules_%d_%d[] = {\n", i, j
        for (m = 0; m < nrules[v]; m++) printf "\t%s,\n", rules[v, m]
        print "\t{NULL, 0, -1, NULL},\n};"
      }
      printf "static const struct field_object objects_%d[] = {\n", i
      for (j = 0; j < nkinds[i]; j++) printf "\t{%s, rules_%d_%d},\n", quote(kinds[i, j] == "-" ? "" : kinds[i, j]), i, j
      print "\t{NULL, NULL},\n};"
    }
    print "const struct field_place field_places[] = {"
    for (i = 0; i < np; i++) printf "\t{%s, %s, %s, objects_%d},\n", quote(pformat[i]), quote(pname[i]), (typed[i] ? "true" : "false"), i
    print "\t{NULL, NULL, false, NULL},\n};\n\nconst struct field_denied fields_denied[] = {"
    for (i = 0; i < nall; i++) printf "\t%s,\n", all[i]
    print "\t{NULL, 0},\n};\n\nconst char *const types_denied[] = {"
    for (i = 0; i < ntypes; i++) printf "\t%s,\n", quote(types[i])
    print "\tNULL,\n};"
  } else { print "gen-fields.awk: out must be h or c" > "/dev/stderr"; exit 1 }
}
