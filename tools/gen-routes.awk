# Generates the two dispatch tables from spec/routes.tab (tab separated).
#
#   awk -v out=h|public|internal|stub -f tools/gen-routes.awk spec/routes.tab
#
# A line: side, method, path, principals, audience, body limit, content type, rights, handler.
# Refused: two rows of one shape, an internal row without audience or with api or device, a public row
# with an audience or the run principal, unknown words, a path that is not canonical.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
BEGIN { FS = "\t"; n = 0 }
/^#/ || /^[ \t]*$/ { next }
{
  if (NF != 9) die("nine columns, separated by one tab each, not " NF)
  if ($1 != "public" && $1 != "internal") die("side must be public or internal")
  if ($2 !~ /^(GET|POST|DELETE|PUT)$/) die("unknown method " $2)
  if ($3 !~ /^(\/([a-z0-9._-]+|\{[a-zA-Z]+\}(:[a-zA-Z]+)?))+$/ || $3 ~ /\/\.\.?(\/|$)/) die("bad path " $3)
  shape = $3; args = gsub(/\{[a-zA-Z]+\}/, "{}", shape)
  if (args > 2) die("more than two {} segments in " $3)
  if (($2, shape) in seen) die($2 " " $3 " has the shape of line " seen[$2, shape])
  seen[$2, shape] = FNR
  who = ""; run = 0; k = split($4, a, ",")
  for (i = 1; i <= k; i++) {
    if (a[i] !~ /^(none|api|device|run)$/) die("unknown principal " a[i])
    if (a[i] == "none" && k > 1) die("none stands alone")
    if ($1 == "internal" && a[i] != "run") die("an internal route is for run tokens only, not " a[i])
    if ($1 == "public" && a[i] == "run") die("a public route is not for run tokens")
    who = who (i > 1 ? " | " : "") "ROUTE_" toupper(a[i])
  }
  if (k == 0) die("no principals")
  if ($5 !~ /^(-|model|events|approvals)$/) die("unknown audience " $5)
  if ($1 == "internal" && $5 == "-") die("an internal route needs an audience")
  if ($1 == "public" && $5 != "-") die("a public route has no audience")
  if ($6 !~ /^[0-9]+$/ || $6 > ($7 == "archive" ? 1000000000 : 16777216)) die("bad body limit " $6)
  if ($7 !~ /^(-|any|archive|application\/json)$/) die("unknown content type " $7)
  if (($6 == 0) != ($7 == "-")) die("a body limit of 0 goes with the content type -, and no other")
  rights = ""
  if ($8 != "-") {
    k = split($8, a, ",")
    for (i = 1; i <= k; i++) { if (a[i] !~ /^(approve|metrics)$/) die("unknown right " a[i]); rights = rights (i > 1 ? " | " : "") "RIGHT_" toupper(a[i]) }
  }
  if ($9 !~ /^[a-z][a-z0-9_]*$/) die("bad handler " $9)
  side[n] = $1; method[n] = $2; path[n] = $3; principals[n] = who; handler[n] = $9; limit[n] = $6
  audience[n] = ($5 == "-" ? "-1" : "TOKEN_" toupper($5))
  body[n] = ($7 == "-" ? "BODY_NONE" : $7 == "any" ? "BODY_ANY" : $7 == "archive" ? "BODY_ARCHIVE" : "BODY_JSON"); right[n] = (rights == "" ? "0" : rights)
  n++
}
END {
  if (failed) exit 1
  if (!n) { print FILENAME ": no routes" > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/routes.tab by tools/gen-routes.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_ROUTES_H\n#define GEN_ROUTES_H\n#include \"lib/route.h\"\n\n/* Each ends with a row whose path is NULL. */\nextern const struct route routes_public[], routes_internal[];\n"
    for (i = 0; i < n; i++) if (!((side[i], handler[i]) in done)) {
      done[side[i], handler[i]] = 1
      if (side[i] == "public") printf "void handle_%s(struct request *rq, struct reply *rp);\n", handler[i]
      else printf "void gate_%s(struct gate_call *call);\n", handler[i]
    }
    print "#endif"
  } else if (out == "public" || out == "internal") {
    printf "#include \"gen/routes.h\"\n#include \"lib/token.h\"\n\nconst struct route routes_%s[] = {\n", out
    for (i = 0; i < n; i++) if (side[i] == out)
      printf "\t{.name = \"%s\", .method = METHOD_%s, .path = \"%s\", .principals = %s, .audience = %s, .rights = %s, .body_limit = %d, .body = %s, .%s = %s_%s},\n", \
        handler[i], method[i], path[i], principals[i], audience[i], right[i], limit[i], body[i], (out == "public" ? "handle" : "gate"), (out == "public" ? "handle" : "gate"), handler[i]
    print "\t{.path = NULL},\n};"
  } else if (out == "stub") {
    # Every handler as a witness, for tests of what comes before them.
    print "#include \"gen/routes.h\"\n#include \"tests/unit/reached.h\"\n"
    for (i = 0; i < n; i++) if (!((side[i], handler[i]) in done)) {
      done[side[i], handler[i]] = 1
      if (side[i] == "public") printf "void handle_%s(struct request *rq, struct reply *rp)\n{\n\treached(\"%s\", rq, rp);\n}\n", handler[i], handler[i]
      else printf "void gate_%s(struct gate_call *call)\n{\n\treached_inside(\"%s\", call);\n}\n", handler[i], handler[i]
    }
  } else { print "gen-routes.awk: out must be h, public, internal or stub" > "/dev/stderr"; exit 1 }
}
