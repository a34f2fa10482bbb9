# Generates the walls of a box from spec/walls.tab (tab separated).
#
#   awk -v out=h|c|md -f tools/gen-walls.awk spec/walls.tab
#
# A line: id, name, first kernel, required or extra, machine or box, reason, what happens without it.
# Refused: an id or a name twice, a required wall that the baseline (6.1) lacks, more walls than a mask has bits.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
BEGIN { FS = "\t"; n = 0 }
/^#/ || /^[ \t]*$/ { next }
NF != 7 { die("seven columns, separated by one tab each, not " NF) }
$1 !~ /^[a-z][a-z_]*$/ { die("bad id " $1) }
$2 !~ /^[a-z][a-z_ ]*$/ || length($2) > 32 { die("bad name " $2) }
$1 in ids { die("id " $1 " twice") }
$2 in names { die("name " $2 " twice") }
$3 != "-" && $3 !~ /^[0-9]+\.[0-9]+$/ { die("a kernel is MAJOR.MINOR or -, not " $3) }
$4 != "required" && $4 != "extra" { die("required or extra, not " $4) }
$5 != "machine" && $5 != "box" { die("of the machine or of the box, not " $5) }
$6 !~ /\.$/ || $7 !~ /\.$/ { die("a sentence ends with a full stop") }
{
  split($3, v, ".")
  if ($4 == "required" && $3 != "-" && (v[1] > 6 || (v[1] == 6 && v[2] > 1))) die($1 " is required, and the baseline has no Linux " $3)
  ids[$1] = names[$2] = 1
  id[n] = $1; name[n] = $2; kernel[n] = $3; need[n] = $4; of[n] = $5; why[n] = $6; without[n] = $7; n++
}
END {
  if (failed) exit 1
  if (!n || n > 62) { print FILENAME ": from 1 to 62 walls, not " n > "/dev/stderr"; exit 1 }
  if (out == "h") {
    print "/* Generated from spec/walls.tab by tools/gen-walls.awk; do not edit. */"
    print "#ifndef GEN_WALLS_H\n#define GEN_WALLS_H\n#include <stdbool.h>\n\nenum step {\n\tSTEP_NONE,"
    for (i = 0; i < n; i++) printf "\tSTEP_%s,\n", toupper(id[i])
    print "\tSTEP__COUNT\n};\n"
    print "/* name: in refusals. kernel: the first that has it, \"\" any. required: no box without it. machine: its failure is the\n * machine's rather than this one box's. why: its reason; without: what happens where it is missing. */"
    print "struct wall {\n\tconst char *name, *kernel;\n\tbool required, machine;\n\tconst char *why, *without;\n};\n"
    print "extern const struct wall walls[STEP__COUNT];\n#endif"
  } else if (out == "c") {
    print "/* Generated from spec/walls.tab by tools/gen-walls.awk; do not edit. */\n#include \"gen/walls.h\"\n"
    print "const struct wall walls[STEP__COUNT] = {\n\t[STEP_NONE] = {\"nothing\", \"\", false, false, \"Not a step.\", \"\"},"
    for (i = 0; i < n; i++)
      printf "\t[STEP_%s] = {\"%s\", \"%s\", %s, %s,\n\t\t\"%s\",\n\t\t\"%s\"},\n", toupper(id[i]), name[i], (kernel[i] == "-" ? "" : kernel[i]),
        (need[i] == "required" ? "true" : "false"), (of[i] == "machine" ? "true" : "false"), why[i], without[i]
    print "};"
  } else if (out == "md") {
    printf "# Walls, made from spec/walls.tab and spec/seccomp.tab; why and against whom: [security.md](security.md)\n\n## The walls of a box\n\nThese %d, built in this order (spec/walls.tab).\n\n", n
    print "| wall | since Linux | | what it is for | without it |\n| --- | --- | --- | --- | --- |"
    for (i = 0; i < n; i++) printf "| %s | %s | %s | %s | %s |\n", name[i], (kernel[i] == "-" ? "any" : kernel[i]), need[i], why[i], without[i]
  } else { print "gen-walls.awk: out must be h, c or md" > "/dev/stderr"; exit 1 }
}
