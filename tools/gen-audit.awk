# Generates the audit log's tables from spec/audit.tab (tab separated).
#
#   awk -v out=h|c -f tools/gen-audit.awk spec/audit.tab
#
# Refused: a number or name used twice, a field that has a reserved name or that no event has, a note that is
# required, a role's event without a text field, unknown words and fields, more fields than a line holds.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function word(s) { gsub(/[^A-Za-z0-9]/, "_", s); return toupper(s) }
function snake(s,   r, i, c) {
  for (i = 1; i <= length(s); i++) { c = substr(s, i, 1); r = r (c ~ /[A-Z]/ ? "_" : "") toupper(c) }
  return r
}
BEGIN {
  FS = "\t"; MOST = 6; nf = 0; ne = 0
  k = split("ts seq event tenant actor requestId run prev hash", a, " ")
  for (i = 1; i <= k; i++) reserved[a[i]] = 1
}
/^#/ || /^[ \t]*$/ { next }
$1 == "field" {
  if (NF != 4) die("field, name, type, keep or redact, separated by one tab each")
  if ($2 !~ /^[a-z][A-Za-z0-9]*$/) die("bad field name " $2)
  if ($2 in reserved) die("field " $2 " is reserved")
  if ($2 in field) die("field " $2 " used twice")
  if ($3 != "str" && $3 != "int") die("unknown type " $3)
  if ($4 != "keep" && $4 != "redact") die("a field is kept or redacted, not " $4)
  if ($3 == "int" && $4 != "keep") die("a number is always kept")
  field[$2] = nf; fname[nf] = $2; ftype[nf] = $3; fkeep[nf] = $4; nf++
  if (nf > 60) die("too many fields")
  next
}
$1 == "event" {
  if (NF != 7) die("event, number, name, commit or note, required or optional, by, fields")
  if ($2 !~ /^[0-9]+$/ || $2 < 1 || $2 > 250) die("bad number " $2)
  if ($2 in number) die("number " $2 " of " $3 " is already " number[$2])
  if ($3 !~ /^[a-z]+\.[a-z_]+(\.[a-z_]+)?$/ || length($3) > 40) die("bad event name " $3)
  if ($3 in event) die("event " $3 " used twice")
  if ($4 != "commit" && $4 != "note") die("an event is commit or note, not " $4)
  if ($5 != "required" && $5 != "optional") die("an event is required or optional, not " $5)
  if ($4 == "note" && $5 == "required") die("a note refuses nothing, so it cannot be required")
  number[$2] = $3; event[$3] = 1
  roles = "0"; text = ""; mask = "0"
  k = split($6, a, ",")
  for (i = 1; i <= k; i++) {
    if (a[i] !~ /^(stored|fcgi|gateway|steward|admin)$/) die("unknown role " a[i])
    if (a[i] == "stored" && k > 1) die("stored stands alone")
    if (a[i] != "stored") roles = roles " | AUDIT_BY_" toupper(a[i])
  }
  if (roles != "0" && $4 != "note") die("a role can only cause a note")
  if ($7 != "-") {
    k = split($7, a, ",")
    if (k > MOST) die("more than " MOST " fields")
    for (i = 1; i <= k; i++) {
      if (!(a[i] in field)) die("unknown field " a[i])
      if (text == "" && ftype[field[a[i]]] == "str") text = a[i]
      mask = mask " | BIT(" snake(a[i]) ")"
      used[a[i]] = 1
    }
  }
  if (roles != "0" && text == "") die("what a role causes needs a str field for its subject")
  num[ne] = $2; name[ne] = $3; commit[ne] = ($4 == "commit" ? "true" : "false"); req[ne] = ($5 == "required" ? "true" : "false")
  by[ne] = roles; masks[ne] = mask; subject[ne] = text; ne++
  next
}
{ die("a line is field or event, not " $1) }
END {
  if (failed) exit 1
  if (!ne) { print FILENAME ":" FNR ": no events" > "/dev/stderr"; exit 1 }
  for (i = 0; i < nf; i++) if (!(fname[i] in used)) { print FILENAME ":" FNR ": no event has the field " fname[i] > "/dev/stderr"; exit 1 }
  print "/* Generated from spec/audit.tab by tools/gen-audit.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_AUDIT_H\n#define GEN_AUDIT_H\n#include <stdbool.h>\n#include <stdint.h>\n\nenum audit_event {"
    for (i = 0; i < ne; i++) printf "\tAUDIT_%s = %d,\n", word(name[i]), num[i]
    print "};\n\nenum audit_field {\n\tAUDIT_F_NONE,"
    for (i = 0; i < nf; i++) printf "\tAUDIT_F_%s,\n", snake(fname[i])
    print "\tAUDIT_F__COUNT\n};\n"
    printf "enum { AUDIT_VALUES = %d, AUDIT_BY_FCGI = 1, AUDIT_BY_GATEWAY = 2, AUDIT_BY_STEWARD = 4, AUDIT_BY_ADMIN = 8 };\n\n", MOST
    print "struct audit_row {\n\tconst char *name;\n\tbool commit, required;\n\tuint8_t by;       /* roles that may cause it by AUDIT_NOTE */\n\tuint8_t subject;  /* enum audit_field of a note's subject */\n\tuint64_t fields;  /* 1 << enum audit_field */\n};"
    print "struct audit_field_row {\n\tconst char *name;\n\tbool number, keep;\n};\n"
    print "/* NULL: there is no such event. */\nconst struct audit_row *audit_row(unsigned event);\n/* 0: unknown. name need not be terminated. */\nunsigned audit_find(const char *name, unsigned n);\nextern const struct audit_field_row audit_fields[AUDIT_F__COUNT];\n#endif"
  } else if (out == "c") {
    print "#include \"gen/audit.h\"\n#include <stddef.h>\n#include <string.h>\n\n#define BIT(f) UINT64_C(1) << AUDIT_F_##f\n\nstatic const struct audit_row rows[] = {"
    for (i = 0; i < ne; i++) printf "\t[AUDIT_%s] = {\"%s\", %s, %s, %s, %s, %s},\n", word(name[i]), name[i], commit[i], req[i], by[i], (subject[i] == "" ? "AUDIT_F_NONE" : "AUDIT_F_" snake(subject[i])), masks[i]
    print "};\n\nconst struct audit_field_row audit_fields[AUDIT_F__COUNT] = {"
    for (i = 0; i < nf; i++) printf "\t[AUDIT_F_%s] = {\"%s\", %s, %s},\n", snake(fname[i]), fname[i], (ftype[i] == "int" ? "true" : "false"), (fkeep[i] == "keep" ? "true" : "false")
    print "};\n\nconst struct audit_row *audit_row(unsigned event)\n{\n\treturn event < sizeof rows / sizeof rows[0] && rows[event].name != NULL ? &rows[event] : NULL;\n}\n"
    print "unsigned audit_find(const char *name, unsigned n)\n{\n\tfor (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)\n\t\tif (rows[i].name != NULL && strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)\n\t\t\treturn i;\n\treturn 0;\n}"
  } else { print "gen-audit.awk: out must be h or c" > "/dev/stderr"; exit 1 }
}
