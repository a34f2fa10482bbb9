# Generates the rules and fields of foreign text from spec/text.tab (tab separated).
#
#   awk -v out=h -f tools/gen-text.awk spec/text.tab
#
# Refused: a name twice, a field without a bound or too small for the mark of a cut, code points that overlap within
# one list or are none, what is kept and is not taken, a mask longer than what it hides, unknown words.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function hex(s,   i, v) {
  if (s !~ /^[0-9A-F]+$/ || length(s) < 4 || length(s) > 6) die("a code point is four to six hexadecimal digits, not " s)
  for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789ABCDEF", substr(s, i, 1)) - 1
  if (v > 1114111) die(s " is no code point")
  return v
}
# Adds the rules of one cell to a list.
function rules(list, s,   k, i, part, end, lo, hi) {
  if (s ~ /^property [a-z_]+$/) {
    sub(/^property /, "", s)
    if ((list, s) in seen) die("property " s " twice")
    seen[list, s] = 1
    body[list] = body[list] " PROPERTY(" s ")"; count[list]++
    return
  }
  k = split(s, part, ",")
  for (i = 1; i <= k; i++) {
    if (split(part[i], end, "-") > 2) die("a range has two ends: " part[i])
    lo = hex(end[1]); hi = end[2] != "" ? hex(end[2]) : lo
    if (end[2] != "" && hi <= lo) die("the range " part[i] " is empty")
    for (j = 1; j <= nr[list]; j++) if (lo <= last[list, j] && hi >= first[list, j]) die(part[i] " stands twice in one list")
    first[list, ++nr[list]] = lo; last[list, nr[list]] = hi
    body[list] = body[list] sprintf(" RANGE(0x%x, 0x%x)", lo, hi); count[list]++
  }
}
BEGIN { FS = "\t"; n = 0 }
/^#/ || /^[ \t]*$/ { next }
$NF !~ /[^ ].*\.$/ { die("why, as a sentence with a full stop") }
$1 == "take" {
  if (NF != 4) die("take, all or line, what, why, separated by one tab each")
  if ($2 != "all" && $2 != "line") die("what is taken is taken from all or line, not " $2)
  rules($2, $3); next
}
$1 == "keep" {
  if (NF != 4 || $2 != "body") die("keep, body, what, why, separated by one tab each")
  rules("keep", $3); next
}
$1 == "blank" {
  if (NF != 3) die("blank, what, why, separated by one tab each")
  rules("blank", $2); next
}
$1 == "mask" {
  if (NF != 6) die("mask, kind, what, class, least, why, separated by one tab each")
  if ($2 !~ /^(prefix|parts|word|block|name)$/) die("a mask is of a prefix, parts, word, block or name, not " $2)
  if ($4 !~ /^(upper|alnum|word|url|base64|bearer|value)$/) die("a class is upper, alnum, word, url, base64, bearer or value, not " $4)
  if ($5 !~ /^[1-9][0-9]*$/ || $5 < 8 || $5 > 64) die("least is 8, as many as the mark has, to 64, not " $5)
  if ($3 !~ ($2 == "block" ? "^[A-Z ]+$" : $2 ~ /^(word|name)$/ ? "^[a-z]+$" : "^[A-Za-z][A-Za-z_-]+$")) die("that cannot be looked for: " $3)
  if (("mask", $3) in seen) die("mask " $3 " twice")
  seen["mask", $3] = 1
  mask[nm++] = toupper($2) ", \"" $3 "\", " toupper($4) ", " $5
  next
}
$1 == "field" {
  if (NF != 6) die("field, name, line or body, cap, of, why, separated by one tab each")
  if ($2 !~ /^[a-z][a-z_]*$/) die("bad name " $2)
  if ($2 in name) die("field " $2 " twice")
  if ($3 != "line" && $3 != "body") die("a field is line or body, not " $3)
  if ($4 !~ /^[1-9][0-9]*$/ || $4 < 16 || $4 > 64000) die("a cap is 16 to 64000 bytes, not " $4)
  if ($5 != "any" && $5 != "question" && $5 != "-") die("a key is one of any event, question or -, not " $5)
  name[$2] = 1; of[n] = $5 == "-" ? "NOTHING" : toupper($5); field[n] = $2; kind[n] = $3; cap[n] = $4; n++
  next
}
{ die("a line is take, keep, blank, mask or field, not " $1) }
function list(macro, key) {
  printf "#define TEXT_%s(RANGE, PROPERTY)%s\n", macro, body[key]
}
END {
  if (failed) exit 1
  k = split("all line keep blank", need, " ")
  for (i = 1; i <= k; i++) if (!count[need[i]]) { printf "%s: no row of %s\n", FILENAME, need[i] > "/dev/stderr"; exit 1 }
  for (i = 1; i <= nr["keep"]; i++) {
    found = 0
    for (j = 1; j <= nr["all"]; j++) if (first["keep", i] >= first["all", j] && last["keep", i] <= last["all", j]) found = 1
    if (!found) { printf "%s: what is kept must be taken by a row of all\n", FILENAME > "/dev/stderr"; exit 1 }
  }
  if (!nm) { printf "%s: no row of mask\n", FILENAME > "/dev/stderr"; exit 1 }
  if (!("event" in name) || !("key" in name)) { printf "%s: the fields event and key are needed\n", FILENAME > "/dev/stderr"; exit 1 }
  if (out != "h") { print "gen-text.awk: out must be h" > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/text.tab by tools/gen-text.awk; do not edit. */\n#ifndef GEN_TEXT_H\n#define GEN_TEXT_H\n"
  print "/* BODY keeps newline and tab. */\nenum text_kind { TEXT_LINE, TEXT_BODY };\n/* In whose data a field is known by its name as a key. */\nenum text_of { TEXT_OF_NOTHING, TEXT_OF_ANY, TEXT_OF_QUESTION };\n"
  print "enum text_field {"
  for (i = 0; i < n; i++) printf "\tTEXT_F_%s,\n", toupper(field[i])
  print "\tTEXT_F__COUNT\n};\n"
  print "/* Every field in order: FIELD(constant, name, kind, cap, of). */\n#define TEXT_FIELDS(FIELD) \\"
  for (i = 0; i < n; i++) printf "\tFIELD(TEXT_F_%s, \"%s\", TEXT_%s, %d, TEXT_OF_%s)%s\n", toupper(field[i]), field[i], toupper(kind[i]), cap[i], of[i], (i < n - 1 ? " \\" : "")
  print "\n/* The caps, for buffers. */\nenum {"
  for (i = 0; i < n; i++) printf "\tTEXT_CAP_%s = %d,\n", toupper(field[i]), cap[i]
  print "};"
  print "\n/* What is taken from every text, from one line besides, what bodies keep, and what is no word. */"
  print "\n/* What looks like a secret, in order: MASK(kind, what, class, least). */\n#define TEXT_MASKS(MASK) \\"
  for (i = 0; i < nm; i++) printf "\tMASK(%s)%s\n", mask[i], (i < nm - 1 ? " \\" : "")
  list("TAKEN", "all"); list("LINE_TAKEN", "line"); list("BODY_KEPT", "keep"); list("BLANK", "blank")
  print "#endif"
}
