# Generates the numbers of GET /v1/limits from spec/limits.tab (tab separated).
#
#   awk -v out=h -f tools/gen-limits.awk spec/routes.tab spec/schema.tab spec/limits.tab
#
# A line: group, name, value, unit, sentence. See the table's head for what a value may be.
# Refused: a name twice, rows of one group apart, a place that the other tables do not have.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function constant(s) { gsub(/[A-Z]/, "_&", s); return toupper(s) }
# The number that a value stands for; "" where only the running service knows.
function place(v, part, k, field) {
  if (v ~ /^[0-9]+$/) return v
  k = split(v, part, ":")
  if (part[1] == "routes" && k == 3 && part[3] == "body") {
    if (!(part[2] in body)) die("no route has the handler " part[2])
    return body[part[2]]
  }
  if (part[1] == "schema" && k == 4) {
    if (!((part[2], part[3], part[4]) in bound)) die("no bound " v)
    if (bound[part[2], part[3], part[4]] == "-") die(v " is no bound")
    return bound[part[2], part[3], part[4]]
  }
  if (k == 2 && part[1] ~ /^(global|tenant|agent)$/ && part[2] ~ /^[a-z][a-z_]*$/) return ""
  die("a value is a number, routes:, schema:, global:, tenant: or agent:, not " v)
}
BEGIN { FS = "\t"; n = 0 }
FNR == 1 { nfile++ }
/^#/ || /^[ \t]*$/ { next }
nfile == 1 { body[$9] = $6; next }
nfile == 2 { bound[$1, $2, "min"] = $5; bound[$1, $2, "max"] = $6; bound[$1, $2, "maxbytes"] = $7; next }
{
  if (NF != 5) die("five columns, separated by one tab each, not " NF)
  if ($1 !~ /^[a-z][a-zA-Z]*$/ || $2 !~ /^[a-z][a-zA-Z]*$/) die("bad name " $1 "." $2)
  if (($1, $2) in seen) die($1 "." $2 " twice")
  if ($5 == "" || $4 == "") die("no unit or no sentence")
  seen[$1, $2] = 1
  if ($1 != last) { if ($1 in groups) die("the rows of " $1 " are not together"); groups[$1] = 1; last = $1 }
  number = place($3)
  group[n] = $1; name[n] = $2; value[n] = $3; num[n] = number; n++
}
END {
  if (failed) exit 1
  if (!n) { print FILENAME ": no limits" > "/dev/stderr"; exit 1 }
  if (out == "h") {
    print "/* Generated from spec/limits.tab by tools/gen-limits.awk; do not edit. */\n#ifndef GEN_LIMITS_H\n#define GEN_LIMITS_H\n"
    for (i = 0; i < n; i++) if (value[i] ~ /^[0-9]+$/) printf "enum { LIMIT_%s_%s = %s };\n", constant(group[i]), constant(name[i]), value[i]
    print "\n/* Every row in order. GROUP(name) begins a group; NUMBER(name, value), GLOBAL, TENANT and AGENT(name, field) are its rows. */"
    print "#define LIMIT_ROWS(GROUP, NUMBER, GLOBAL, TENANT, AGENT) \\"
    for (i = 0; i < n; i++) {
      if (i == 0 || group[i] != group[i - 1]) printf "\tGROUP(\"%s\") \\\n", group[i]
      split(value[i], part, ":")
      printf "\t%s(\"%s\", %s)%s\n", (num[i] != "" ? "NUMBER" : toupper(part[1])), name[i], (num[i] != "" ? num[i] : part[2]), (i < n - 1 ? " \\" : "")
    }
    print "#endif"
  } else { print "gen-limits.awk: out must be h" > "/dev/stderr"; exit 1 }
}
