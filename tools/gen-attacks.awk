# Generates the table of attacks from spec/attacks.tab; what they lean on is a wall of spec/walls.tab, or a part of the service.
#
#   awk -v out=h|c|inside -f tools/gen-attacks.awk spec/walls.tab spec/attacks.tab
#
# h and c: the table, for the command. inside: the functions of the program in the box.
# Refused: an id twice, a row without six columns, a wall that is none, a way of trying that is none, an end of a run that is none.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
BEGIN { FS = "\t"; n = 0; split("gateway collector checks runner tenancy text", parts, " "); for (k in parts) wall_known[parts[k]] = 1 }
/^#/ || /^[ \t]*$/ { next }
FILENAME ~ /walls\.tab$/ { wall_known[$2] = 1; next }
NF != 6 { die("id, class, wall, how, must, what") }
$1 !~ /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/ || length($1) > 40 { die("bad id " $1) }
$1 in seen { die("attack " $1 " twice") }
$2 !~ /^[a-z]+$/ { die("bad class " $2) }
!($3 in wall_known) { die("there is no wall " $3) }
$4 !~ /^(box|alone|plant|seen|kill)$/ { die("how is box, alone, plant, seen or kill") }
($4 == "plant" || ($4 == "alone" && $5 ~ /\//)) && $5 !~ /^(completed\/|failed\/[a-z_]+)(\|(completed\/|failed\/[a-z_]+))*$/ { die("must is status/error|status/error") }
{ seen[$1] = 1; id[n] = $1; class[n] = $2; wall[n] = $3; how[n] = $4; must[n] = $5; what[n++] = $6 }
END {
  if (failed) exit 1
  print "/* Generated from spec/attacks.tab by tools/gen-attacks.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_ATTACKS_H\n#define GEN_ATTACKS_H\n\nenum attack_how { ATTACK_BOX, ATTACK_ALONE, ATTACK_PLANT, ATTACK_SEEN, ATTACK_KILL };\n"
    printf "struct attack {\n\tconst char *id, *class, *wall;\n\tenum attack_how how;\n\tconst char *must, *what;\n};\n\nenum { ATTACKS = %d };\nextern const struct attack attacks[ATTACKS];\n#endif\n", n
  } else if (out == "c") {
    print "#include \"gen/attacks.h\"\n\nconst struct attack attacks[ATTACKS] = {"
    for (i = 0; i < n; i++)
      printf "\t{%s, %s, %s, ATTACK_%s, %s, %s},\n", quoted(id[i]), quoted(class[i]), quoted(wall[i]), toupper(how[i]), quoted(must[i]), quoted(what[i])
    print "};"
  } else if (out == "inside") {
    print "#ifndef GEN_ATTACKS_INSIDE_H\n#define GEN_ATTACKS_INSIDE_H\nstruct tried; /* attack/tried.h */\n"
    for (i = 0; i < n; i++) if (how[i] != "seen" && how[i] != "kill") {
      f = id[i]; gsub(/-/, "_", f)
      printf "struct tried attack_%s(void);\n", f
      list = list sprintf(" \\\n\tX(\"%s\", attack_%s)", id[i], f)
    }
    printf "\n#define ATTACKS_INSIDE(X)%s\n#endif\n", list
  } else { print "gen-attacks.awk: out must be h, c or inside" > "/dev/stderr"; exit 1 }
}
