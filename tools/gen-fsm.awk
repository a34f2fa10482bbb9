# Generates a state machine from a table with every state x event cell filled (spec/*.fsm).
#
#   awk -v out=h|c|pml -f tools/gen-fsm.awk spec/errors.tab spec/run.fsm
#
# pml is the same table for the models in spec/models.
#
# The files before the last are error tables: refuse:ERROR must name one of them.
# A file says: machine NAME; states, public and final lists; where it rests (home STATE, if it does); events; then one line a state with one
# cell an event: go:STATE, keep, or refuse:ERROR. The first state is where a machine begins.
# Refused: unknown states or errors, a missing or empty cell, go: to where it is, a way out of a final state, a state that
# nobody can reach, a state from which no final state can be reached, one that is not final with no way home.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function fail(why) { printf "%s: %s\n", FILENAME, why > "/dev/stderr"; failed = 1; exit 1 }
FILENAME ~ /\.tab$/ { if ($1 ~ /^[0-9]+$/ && $2 != "dropped") { error[$2] = 1; nerror++ } next }
{ sub(/#.*/, "") }
NF == 0 { next }
$1 == "machine" { if (M != "") die("a second machine"); M = $2; if (NF != 2 || M !~ /^[a-z]+$/) die("machine NAME"); next }
$1 == "states" {
  for (i = 2; i <= NF; i++) { if ($i !~ /^[a-z_]+$/) die("bad state " $i); if ($i in state) die("state " $i " twice"); state[$i] = i; name[ns++] = $i }
  next
}
$1 == "public" { if (NF - 1 != ns) die("one public word a state"); for (i = 2; i <= NF; i++) word[name[i - 2]] = $i; pub = 1; next }
$1 == "final" { for (i = 2; i <= NF; i++) { if (!($i in state)) die("unknown state " $i); final[$i] = 1; nfinal++ } next }
$1 == "home" { if (NF != 2 || !($2 in state)) die("home STATE, one of the states"); home = $2; next }
$1 == "events" {
  for (i = 2; i <= NF; i++) { if ($i !~ /^[a-z_]+$/) die("bad event " $i); if ($i in event) die("event " $i " twice"); event[$i] = 1; ev[ne++] = $i }
  next
}
{
  if (!($1 in state)) die("unknown state " $1)
  if ($1 in row) die("state " $1 " has two lines")
  row[$1] = 1
  if (NF - 1 < ne) die("state " $1 " has no cell for " ev[NF - 1])
  if (NF - 1 > ne) die("state " $1 " has more cells than there are events")
  for (i = 2; i <= NF; i++) {
    if ($i == "keep") kind[$1, i - 2] = "keep"
    else if ($i ~ /^go:/) {
      to = substr($i, 4)
      if (!(to in state)) die("unknown state " to)
      if (to == $1) die("keep, not go:" to ", is how " $1 " stays")
      if ($1 in final) die("a way out of the final state " $1 " by " ev[i - 2])
      kind[$1, i - 2] = "go"; target[$1, i - 2] = to
    } else if ($i ~ /^refuse:/) {
      e = substr($i, 8)
      if (e !~ /^[a-z0-9_]+$/ || (nerror && !(e in error))) die("unknown error " e)
      kind[$1, i - 2] = "refuse"; target[$1, i - 2] = e
    } else die("a cell is go:STATE, keep or refuse:ERROR, not " $i)
  }
}
END {
  if (failed) exit 1
  if (M == "" || !ns || !ne || !nfinal || !pub) fail("machine, states, public, final and events are needed")
  for (i = 0; i < ns; i++) if (!(name[i] in row)) fail("state " name[i] " has no line")
  # Forward from the first state, backward from the final ones.
  reach[name[0]] = 1
  for (s in final) good[s] = 1
  if (home != "") back[home] = 1
  for (round = 0; round < ns; round++)
    for (i = 0; i < ns; i++)
      for (j = 0; j < ne; j++) if (kind[name[i], j] == "go") {
        if (name[i] in reach) reach[target[name[i], j]] = 1
        if (target[name[i], j] in good) good[name[i]] = 1
        if (target[name[i], j] in back) back[name[i]] = 1
      }
  for (i = 0; i < ns; i++) {
    if (!(name[i] in reach)) fail("state " name[i] " cannot be reached")
    if (!(name[i] in good)) fail("no final state can be reached from " name[i])
    if (home != "" && !(name[i] in final) && !(name[i] in back)) fail("no way home from " name[i])
  }
  U = toupper(M)
  print "/* Generated from spec/" M ".fsm by tools/gen-fsm.awk; do not edit. */"
  if (out == "h") {
    printf "#ifndef GEN_%s_FSM_H\n#define GEN_%s_FSM_H\n#include <stdbool.h>\n#include \"gen/errors.h\"\n\nenum %s_state {\n", U, U, M
    for (i = 0; i < ns; i++) printf "\t%s_%s,\n", U, toupper(name[i])
    printf "\t%s_STATE__COUNT\n};\n\nenum %s_event {\n", U, M
    for (j = 0; j < ne; j++) printf "\t%s_EV_%s,\n", U, toupper(ev[j])
    printf "\t%s_EVENT__COUNT\n};\n\n", U
    printf "/* ERR_OK with the state to be in (that may be the same one), or the refusal; *to is then untouched. */\nenum err %s_step(enum %s_state from, enum %s_event ev, enum %s_state *to);\n", M, M, M, M
    printf "bool %s_final(enum %s_state s);\n/* The word shown outside, and the name used inside; \"unknown\" for a number that is no state. */\nconst char *%s_public(enum %s_state s);\nconst char *%s_state_name(enum %s_state s);\nconst char *%s_event_name(enum %s_event ev);\n", M, M, M, M, M, M, M, M
    if (home != "") printf "\n/* Where it rests. */\nenum { %s_HOME = %s_%s };\n", U, U, toupper(home)
    print "#endif"
  } else if (out == "c") {
    printf "#include \"gen/%s_fsm.h\"\n#include <stddef.h>\n\nstruct cell {\n\tenum err refuse; /* ERR_OK: go */\n\tenum %s_state to;\n};\n\n", M, M
    printf "static const struct cell cells[%s_STATE__COUNT][%s_EVENT__COUNT] = {\n", U, U
    for (i = 0; i < ns; i++) {
      printf "\t[%s_%s] = {\n", U, toupper(name[i])
      for (j = 0; j < ne; j++) {
        k = kind[name[i], j]; t = (k == "go" ? target[name[i], j] : name[i])
        printf "\t\t[%s_EV_%s] = {%s, %s_%s},\n", U, toupper(ev[j]), (k == "refuse" ? "ERR_" toupper(target[name[i], j]) : "ERR_OK"), U, toupper(t)
      }
      print "\t},"
    }
    printf "};\n\nstatic const struct {\n\tconst char *name, *word;\n\tbool final;\n} states[%s_STATE__COUNT] = {\n", U
    for (i = 0; i < ns; i++) printf "\t[%s_%s] = {\"%s\", \"%s\", %s},\n", U, toupper(name[i]), name[i], word[name[i]], (name[i] in final ? "true" : "false")
    printf "};\n\nstatic const char *const events[%s_EVENT__COUNT] = {\n", U
    for (j = 0; j < ne; j++) printf "\t[%s_EV_%s] = \"%s\",\n", U, toupper(ev[j]), ev[j]
    printf "};\n\nenum err %s_step(enum %s_state from, enum %s_event ev, enum %s_state *to)\n{\n", M, M, M, M
    printf "\tif ((size_t)from >= %s_STATE__COUNT || (size_t)ev >= %s_EVENT__COUNT)\n\t\treturn ERR_INTERNAL_ERROR;\n", U, U
    printf "\tconst struct cell *c = &cells[from][ev];\n\tif (c->refuse == ERR_OK)\n\t\t*to = c->to;\n\treturn c->refuse;\n}\n\n"
    printf "bool %s_final(enum %s_state s)\n{\n\treturn (size_t)s < %s_STATE__COUNT && states[s].final;\n}\n\n", M, M, U
    printf "const char *%s_public(enum %s_state s)\n{\n\treturn (size_t)s < %s_STATE__COUNT ? states[s].word : \"unknown\";\n}\n\n", M, M, U
    printf "const char *%s_state_name(enum %s_state s)\n{\n\treturn (size_t)s < %s_STATE__COUNT ? states[s].name : \"unknown\";\n}\n\n", M, M, U
    printf "const char *%s_event_name(enum %s_event ev)\n{\n\treturn (size_t)ev < %s_EVENT__COUNT ? events[ev] : \"unknown\";\n}\n", M, M, U
  } else if (out == "pml") {
    for (i = 0; i < ns; i++) printf "#define %s_%s %d\n", U, toupper(name[i]), i
    printf "#define %s_STATE__COUNT %d\n", U, ns
    for (j = 0; j < ne; j++) printf "#define %s_EV_%s %d\n", U, toupper(ev[j]), j
    printf "#define %s_final(s) (0", M
    for (i = 0; i < ns; i++) if (name[i] in final) printf " || (s) == %d", i
    printf ")\n\n/* refused: 1, and to is untouched */\ninline %s_step(from, event, to, refused)\n{\n\tif\n", M
    for (i = 0; i < ns; i++)
      for (j = 0; j < ne; j++) {
        k = kind[name[i], j]
        printf "\t:: from == %s_%s && event == %s_EV_%s -> ", U, toupper(name[i]), U, toupper(ev[j])
        if (k == "refuse") print "refused = 1"
        else printf "to = %s_%s; refused = 0\n", U, toupper(k == "go" ? target[name[i], j] : name[i])
      }
    print "\tfi\n}"
  } else { print "gen-fsm.awk: out must be h, c or pml" > "/dev/stderr"; exit 1 }
}
