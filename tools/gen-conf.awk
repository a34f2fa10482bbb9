# Generates the tables of settings from spec/conf.tab (tab separated) and the fields of spec/conf.msg.
#
#   awk -v out=h|c -f tools/gen-conf.awk spec/conf.msg spec/conf.tab
#   awk -v out=man -f tools/gen-conf.awk spec/conf.msg spec/conf.tab man/pinfold.conf.5.in
#
# In the manual page's template a line "@settings SECTION" becomes the list of that section's settings.
#
# A line: section, name, type, field, default, least, most, change, sentence; see the table's head. Refused: a name twice in a
# section, rows of a section apart, an unknown type, a field that no message has or that cannot hold the type, a default that
# is out of bounds, a change that is neither reload nor restart.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function quote(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function whole(s) { return s ~ /^(0|[1-9][0-9]*)$/ }
# A word that mdoc would take for a macro or a request stands as it is.
function plain(w) { gsub(/\\/, "\\e", w); if (w ~ /^[.\x27]/) w = "\\&" w; return w }
# What is between backticks is literal; a name with a section of the manual is a reference. One output line a sentence.
function roff(s,  a, k, i, t, rest) {
  k = split(s, a, "`")
  for (i = 1; i <= k; i++) {
    t = a[i]
    if (i % 2 == 0) {
      rest = a[i + 1]
      if (match(rest, /^[.,;:)]+/)) { m = substr(rest, 1, RLENGTH); gsub(/./, " &", m); printf ".Ql %s%s\n", plain(t), m; a[i + 1] = substr(rest, RLENGTH + 1) }
      else printf ".Ql %s\n", plain(t)
      continue
    }
    sub(/^ /, "", t); gsub(/\. /, ".\n", t); gsub(/\n\./, "\n\\\&.", t); sub(/[ \n]+$/, "", t)
    while (match(t, /pinfold[a-z.-]*\([0-9]\)/)) {
      m = substr(t, RSTART, RLENGTH); rest = substr(t, RSTART + RLENGTH); t = substr(t, 1, RSTART - 1); sub(/ +$/, "", t)
      if (t != "") print t
      p0 = substr(m, 1, length(m) - 3)
      if (match(rest, /^[.,;:]+/)) { printf ".Xr %s %s %s\n", p0, substr(m, length(m) - 1, 1), substr(rest, 1, RLENGTH); t = substr(rest, RLENGTH + 1) }
      else { printf ".Xr %s %s\n", p0, substr(m, length(m) - 1, 1); t = rest }
      sub(/^[ \n]/, "", t)
    }
    if (t ~ /[^ ]/) print plain(t)
  }
}
function list_of(s,  i, d, unit, k, a, j, w) {
  print ".Bl -tag -width Ds"
  for (i = 0; i < n; i++) {
    if (section[i] != s) continue
    unit = type[i] in number && type[i] != "number" ? " " type[i] : ""
    if (type[i] in list) { d = ""; k = split(def[i], a, " "); for (j = 1; j <= k; j++) d = d (j > 1 ? " " : "") a[j] } else d = def[i]
    if (length(d) > 50) print ".It Cm " name[i]
    else if (d == "" && least[i] > 0) print ".It Cm " name[i] " No (must be set)"
    else { gsub(/\./, "\\\&.", d); print ".It Cm " name[i] " No (" (d == "" ? "empty" : d) unit ")" }
    roff(doc[i])
    if (length(d) > 50) { printf "By default"; for (j = 1; j <= k; j++) printf "%s\n.Li %s", "", plain(a[j]) (j < k ? " ," : " ."); print "" }
    if (type[i] in number) print "From " least[i] " to " most[i] unit "."
    if (type[i] == "word") { w = words[i]; gsub(/\|/, ", ", w); print (index(words[i], "|") ? "One of: " : "Only: ") w "." }
    if (change[i] == "restart") print "A change takes a restart."
  }
  print ".El"
}
BEGIN {
  n = 0
  k = split("bool number seconds milliseconds days bytes megabytes word text url origin path contact secret role group name names texts hosts argv command environment", a, " ")
  for (i = 1; i <= k; i++) types[a[i]] = 1
  k = split("number seconds milliseconds days bytes megabytes", a, " "); for (i = 1; i <= k; i++) number[a[i]] = 1
  k = split("names texts hosts argv command environment", a, " "); for (i = 1; i <= k; i++) list[a[i]] = 1
}
FNR == 1 { nfile++; if (nfile == 2) FS = "\t" }
nfile == 3 {
  if ($0 !~ /^@settings /) { print; next }
  name0 = $0; sub(/^@settings /, "", name0)
  if (!(name0 in sections)) die("no section " name0)
  list_of(name0)
  next
}
/^#/ || /^[ \t]*$/ { next }
nfile == 1 {
  sub(/#.*/, "")
  if ($1 == "msg") message = tolower($2)
  else if (message != "") { holds[message, $2] = $1; room[message, $2] = ($1 == "id" ? 128 : $1 == "str" ? $3 : $1 == "strs" ? $4 : 0); entries[message, $2] = $1 == "strs" ? $3 : 0 }
  next
}
{
  # The first line of a file was split before FS changed; it is a comment.
  if (NF != 9) die("nine columns, separated by one tab each, not " NF)
  if ($1 !~ /^[a-z][a-z_]*$/ || $2 !~ /^[a-z][a-z_]*$/) die("bad name " $1 " " $2)
  if (($1, $2) in seen) die($2 " twice in " $1)
  seen[$1, $2] = 1
  if ($1 != last) { if ($1 in sections) die("the rows of " $1 " are not together"); sections[$1] = 1; last = $1 }
  k = split($3, t, ":")
  if (!(t[1] in types)) die("unknown type " t[1])
  if (k > 1 != (t[1] ~ /^(word|secret|names?)$/)) die("a type with or without words: " $3)
  kind = ""; m = ""; f = ""
  if ($4 != "-") {
    if (split($4, p, ".") != 2 || !((p[1], p[2]) in holds)) die("no message has the field " $4)
    m = p[1]; f = p[2]; kind = holds[m, f]; if (kind == "id") kind = "str"
    fits = t[1] in number ? kind ~ /^u(16|32|64)$/ : t[1] in list ? kind == "strs" : t[1] == "bool" ? kind == "bool" : t[1] == "word" ? kind ~ /^(str|u8|bool)$/ : t[1] == "group" ? kind == "u32" : kind == "str"
    if (!fits) die($4 " is " kind ", which cannot hold " t[1])
    if (t[1] in list && $7 > entries[m, f]) die($4 " holds " entries[m, f] " words")
  } else if (t[1] != "role") die("a setting without a field")
  if (t[1] in number && (!whole($6) || !whole($7) || !whole($5) || $6 > $7 || $5 + 0 < $6 + 0 || $5 + 0 > $7 + 0)) die("a number has a default and bounds around it")
  if (t[1] == "bool" && $5 !~ /^(yes|no)$/) die("the default of a bool is yes or no")
  if (t[1] == "word" && index("|" t[2] "|", "|" $5 "|") == 0) die("the default is none of the words")
  if ($8 != "reload" && $8 != "restart") die("a change takes a reload or a restart")
  if ($9 !~ /\.$/) die("no sentence")
  section[n] = $1; name[n] = $2; type[n] = t[1]; words[n] = k > 1 ? t[2] : ""; msg[n] = m; field[n] = f; held[n] = kind
  def[n] = $5 == "-" ? "" : $5; least[n] = $6 == "-" ? 0 : $6; most[n] = $7 == "-" ? 0 : $7; change[n] = $8; doc[n] = $9
  wide[n] = m == "" ? 64 : room[m, f]; n++
}
END {
  if (failed) exit 1
  if (!n) { print FILENAME ": no settings" > "/dev/stderr"; exit 1 }
  if (out == "h") {
    print "/* Generated from spec/conf.tab by tools/gen-conf.awk; do not edit. */\n#ifndef GEN_CONF_TAB_H\n#define GEN_CONF_TAB_H\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    printf "enum conf_type {"
    k = split("bool number seconds milliseconds days bytes megabytes word text url origin path contact secret role group name names texts hosts argv command environment", a, " ")
    for (i = 1; i <= k; i++) printf " CONF_%s,", toupper(a[i])
    print " };\nenum conf_held { CONF_NOT_HELD, CONF_HELD_BOOL, CONF_HELD_U8, CONF_HELD_U16, CONF_HELD_U32, CONF_HELD_U64, CONF_HELD_STR, CONF_HELD_STRS };\n"
    print "/* One setting. Texts are never NULL. */\nstruct conf_row {"
    print "\tconst char *section, *name;"
    print "\tconst char *words; /* word: what it may be, as A|B; secret: the roles, as A,B; name, names: the section */"
    print "\tconst char *def;   /* the default as text; a list's words are separated by spaces */"
    print "\tconst char *doc;"
    print "\tenum conf_type type;\n\tenum conf_held held; /* what the field is */"
    print "\tbool restart;        /* a running service keeps what it started with */"
    print "\tuint16_t message;    /* CF_GLOBAL and so on; 0: the reader resolves it */"
    print "\tuint16_t wide;       /* the longest text, or the longest word of a list */"
    print "\tuint64_t least, most;"
    print "\tsize_t at, count_at; /* of the field in its struct cf_...; of the number of words of a list */\n};"
    printf "enum { CONF_ROWS = %d };\nextern const struct conf_row conf_rows[CONF_ROWS];\n#endif\n", n
  } else if (out == "c") {
    print "/* Generated from spec/conf.tab by tools/gen-conf.awk; do not edit. */\n#include \"gen/conf_tab.h\"\n#include \"gen/conf_msg.h\"\n\nconst struct conf_row conf_rows[CONF_ROWS] = {"
    for (i = 0; i < n; i++) {
      printf "\t{.section = %s, .name = %s, .words = %s, .def = %s,\n\t .doc = %s,\n", quote(section[i]), quote(name[i]), quote(words[i]), quote(def[i]), quote(doc[i])
      printf "\t .type = CONF_%s, .restart = %s, .wide = %d, .least = %sull, .most = %sull", toupper(type[i]), change[i] == "restart" ? "true" : "false", wide[i], least[i], most[i]
      if (msg[i] != "") printf ",\n\t .held = CONF_HELD_%s, .message = CF_%s, .at = offsetof(struct cf_%s, %s)", toupper(held[i]), toupper(msg[i]), msg[i], field[i]
      if (held[i] == "strs") printf ", .count_at = offsetof(struct cf_%s, %s_n)", msg[i], field[i]
      print "},"
    }
    print "};"
  } else if (out != "man") { print "gen-conf.awk: out must be h, c or man" > "/dev/stderr"; exit 1 }
}
