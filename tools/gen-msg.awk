# Generates C from a protocol file (spec/*.msg) or a record file (spec/*.rec).
#
#   awk -v out=h|c|on.h|on.c|test.c|fuzz.c|dict -v base=gen/store_msg -f tools/gen-msg.awk spec/store.msg
#
# A file says:
#   protocol PREFIX VERSION MAXFRAME
#   role NAME                       who may be at the asking end (order gives the bit)
#   state NAME                      states of one connection, seen by the answering end
#   msg NAME NUMBER up ROLES STATES NEXT fds=N [once] [reply=NAME]
#   msg NAME NUMBER down fds=N
#   struct NAME                     a part that is repeated inside a bytes field
#   record NAME VERSION             a store record; first byte on disk is the version
#     key PART…                     tenant run name:str seq:u64
#   followed by field lines:  TYPE NAME [MAX [MAX2]] [since=VERSION]
# since: a field of a record that older versions do not have. They are read all the same, and there it is empty or 0;
# what is written is always the present version.
# Types: u8 u16 u32 u64 i32 bool, id (1-128 id characters), str MAX, bytes MAX, strs COUNT MAX.
# Refused: a number or name used twice, unknown types, roles and states, a field without a
# maximum, a down message with states, a reply that does not exist, a message that can exceed the frame.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function up(s) { return toupper(s) }
function low(s) { return tolower(s) }

{ sub(/#.*/, "") }
NF == 0 { next }

$1 == "protocol" { P = $2; VER = $3; MAX = $4; if (P !~ /^[a-z]+$/ || VER !~ /^[0-9]+$/ || MAX !~ /^[0-9]+$/) die("protocol PREFIX VERSION MAXFRAME"); next }
$1 == "role" { if ($2 in role) die("role " $2 " twice"); role[$2] = nrole; rolename[nrole++] = $2; next }
$1 == "state" { if ($2 in state) die("state " $2 " twice"); state[$2] = nstate; statename[nstate++] = $2; next }

$1 == "msg" {
  name = low($2)
  if (name in kind) die("name " $2 " used twice")
  if ($3 !~ /^[0-9]+$/ || $3 < 1 || $3 > 65535) die("bad number " $3)
  if ($3 in number) die("number " $3 " of " $2 " is already " number[$3])
  number[$3] = $2; num[name] = $3; kind[name] = "msg"; order[n++] = name; cur = name; dir[name] = $4
  if ($4 == "up") {
    if (NF < 8) die("msg NAME NUMBER up ROLES STATES NEXT fds=N")
    m = split($5, a, ","); rmask[name] = ""
    for (i = 1; i <= m; i++) { if (!(a[i] in role)) die("unknown role " a[i]); rmask[name] = rmask[name] (i > 1 ? " | " : "") "(1u << " up(P) "_ROLE_" up(a[i]) ")" }
    m = split($6, a, ","); smask[name] = ""
    for (i = 1; i <= m; i++) { if (!(a[i] in state)) die("unknown state " a[i]); smask[name] = smask[name] (i > 1 ? " | " : "") "(1u << " up(P) "_STATE_" up(a[i]) ")" }
    if (!($7 in state)) die("unknown state " $7)
    nxt[name] = up(P) "_STATE_" up($7); opt = 8
  } else if ($4 == "down") { opt = 5; if (NF > 5 ) die("a down message has no states") }
  else die("direction must be up or down")
  if ($opt !~ /^fds=[0-9]+$/) die("fds=N is missing")
  fds[name] = substr($opt, 5) + 0
  once[name] = 0
  for (i = opt + 1; i <= NF; i++) {
    if ($i == "once") once[name] = 1
    else if ($i ~ /^reply=/) reply[name] = low(substr($i, 7))
    else die("unknown word " $i)
  }
  next
}
$1 == "struct" || $1 == "record" {
  name = low($2); if (name in kind) die("name " $2 " used twice")
  kind[name] = $1; order[n++] = name; cur = name
  if ($1 == "record") { if ($3 !~ /^[0-9]+$/) die("record NAME VERSION"); recver[name] = $3 }
  next
}
$1 == "key" { if (kind[cur] != "record") die("key outside a record"); $1 = ""; key[cur] = $0; next }
{
  if (cur == "") die("field outside a message")
  t = $1; f = $2; since = 1
  if ($NF ~ /^since=/) {
    since = substr($NF, 7)
    if (kind[cur] != "record" || since !~ /^[0-9]+$/ || since + 0 < 2 || since + 0 > recver[cur] + 0) die("since=VERSION of " f ": a version of its record, from 2 on")
    $NF = ""; NF--
  }
  if (t !~ /^(u8|u16|u32|u64|i32|bool|id|str|bytes|strs)$/) die("unknown type " t)
  if (f !~ /^[a-z][a-z0-9_]*$/) die("bad field name " f)
  if ((cur, f) in seen) die("field " f " twice in " cur)
  seen[cur, f] = 1
  if ((t == "str" || t == "bytes") && $3 !~ /^[0-9]+$/) die(t " " f " has no maximum")
  if (t == "strs" && ($3 !~ /^[0-9]+$/ || $4 !~ /^[0-9]+$/)) die("strs " f " needs a count and a maximum")
  if (nf[cur] && since + 0 < fs[cur, nf[cur] - 1] + 0) die("field " f " is older than the one before it")
  k = nf[cur]++; fs[cur, k] = since + 0; ft[cur, k] = t; fn[cur, k] = f; fm[cur, k] = $3; fm2[cur, k] = $4
  next
}

function fsize(t, m, m2) {
  if (t == "u8" || t == "bool") return 1; if (t == "u16") return 2
  if (t == "u32" || t == "i32") return 4; if (t == "u64") return 8
  if (t == "id") return 5 + 128; if (t == "str") return 5 + m; if (t == "bytes") return 4 + m
  return 4 + m * (5 + m2)
}
function ctype(t) {
  if (t == "u8") return "uint8_t "; if (t == "u16") return "uint16_t "; if (t == "u32") return "uint32_t "
  if (t == "u64") return "uint64_t "; if (t == "i32") return "int32_t "; if (t == "bool") return "bool "
  if (t == "id" || t == "str") return "const char *"; return "struct wire_bytes "
}
function emit_struct(m,   i) {
  printf "struct %s_%s {\n", P, m
  for (i = 0; i < nf[m]; i++)
    if (ft[m, i] == "strs") printf "\tuint32_t %s_n;\n\tconst char *%s[%d];\n", fn[m, i], fn[m, i], fm[m, i]
    else printf "\t%s%s;\n", ctype(ft[m, i]), fn[m, i]
  if (nf[m] == 0) printf "\tuint8_t nothing;\n"
  printf "};\n"
}
function emit_put(m,   i, t, f) {
  for (i = 0; i < nf[m]; i++) { t = ft[m, i]; f = fn[m, i]
    if (t == "strs") printf "\twire_put_strs(&w, m->%s, m->%s_n, %d, %d);\n", f, f, fm[m, i], fm2[m, i]
    else if (t == "str") printf "\twire_put_str(&w, m->%s, %d);\n", f, fm[m, i]
    else if (t == "bytes") printf "\twire_put_bytes(&w, m->%s, %d);\n", f, fm[m, i]
    else printf "\twire_put_%s(&w, m->%s);\n", t, f }
}
function emit_get(m,   i, t, f) {
  for (i = 0; i < nf[m]; i++) { t = ft[m, i]; f = fn[m, i]
    if (fs[m, i] > 1) { if (t == "id" || t == "str") printf "\tm->%s = \"\";\n", f; printf "\tif (version >= %d)\n\t", fs[m, i] }
    if (t == "strs") printf "\tm->%s_n = wire_get_strs(&r, m->%s, %d, %d);\n", f, f, fm[m, i], fm2[m, i]
    else if (t == "str") printf "\tm->%s = wire_get_str(&r, %d);\n", f, fm[m, i]
    else if (t == "bytes") printf "\tm->%s = wire_get_bytes(&r, %d);\n", f, fm[m, i]
    else printf "\tm->%s = wire_get_%s(&r);\n", f, t }
}
# The key, if there is one, and the fields as the specification has them, on one line.
function words(m,   i, s) {
  if (m in key) { s = "key" key[m]; if (nf[m]) s = s ", " }
  for (i = 0; i < nf[m]; i++) s = s (i ? ", " : "") ft[m, i] " " fn[m, i] (fm[m, i] != "" ? " " fm[m, i] : "") (fm2[m, i] != "" ? " " fm2[m, i] : "") (fs[m, i] > 1 ? " since=" fs[m, i] : "")
  return s == "" ? "nothing" : s
}
function keyargs(m,   a, k, i, s, p) {
  k = split(key[m], a, " "); s = ""
  for (i = 1; i <= k; i++) { split(a[i], p, ":"); s = s ", " (p[2] == "u64" ? "uint64_t " : "const char *") p[1] }
  return s
}

END {
  if (failed) exit 1
  if (P == "") { print FILENAME ": no protocol line" > "/dev/stderr"; exit 1 }
  for (i = 0; i < n; i++) { m = order[i]
    if (m in reply && !(reply[m] in kind)) { print FILENAME ": reply " reply[m] " of " m " does not exist" > "/dev/stderr"; exit 1 }
    total = 16; for (k = 0; k < nf[m]; k++) total += fsize(ft[m, k], fm[m, k], fm2[m, k])
    size[m] = total
    if (kind[m] == "msg" && total > MAX) { print FILENAME ": " m " can be " total " bytes, the frame holds " MAX > "/dev/stderr"; exit 1 } }
  nm = 0; for (i = 0; i < n; i++) if (kind[order[i]] == "msg") nm++
  U = up(P); guard = up(base); gsub(/[^A-Z0-9]/, "_", guard)
  spec = FILENAME; sub(/.*\//, "spec/", spec)
  note = "/* Generated from " spec " by tools/gen-msg.awk; do not edit. */"
  if (out != "dict") print note
  if (out == "h") {
    printf "#ifndef %s_H\n#define %s_H\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include \"gen/errors.h\"\n#include \"lib/wire.h\"\n\nstruct ask;\n\n", guard, guard
    printf "enum { %s_VERSION = %d, %s_MAXFRAME = %d };\n\n", U, VER, U, MAX
    if (nrole) { printf "enum %s_role {", P; for (i = 0; i < nrole; i++) printf "%s %s_ROLE_%s", (i ? "," : ""), U, up(rolename[i]); printf ", %s_ROLE__COUNT };\n", U }
    if (nstate) { printf "enum %s_state {", P; for (i = 0; i < nstate; i++) printf "%s %s_STATE_%s", (i ? "," : ""), U, up(statename[i]); printf ", %s_STATE__COUNT };\n", U }
    if (nm) { printf "\nenum %s_type {\n", P; for (i = 0; i < n; i++) if (kind[order[i]] == "msg") printf "\t%s_%s = %d,\n", U, up(order[i]), num[order[i]]; print "};\n"
      printf "/* Every message; ends with a row of number 0. */\nextern const struct wire_msg %s_msgs[];\n", P }
    print ""
    # An answer may be described further down than its question.
    for (i = 0; i < n; i++) if (order[i] in reply) printf "struct %s_%s;\n", P, reply[order[i]]
    print ""
    for (i = 0; i < n; i++) { m = order[i]; emit_struct(m)
      if (kind[m] == "msg") {
        printf "size_t %s_put_%s(uint8_t *buf, size_t cap, uint64_t op, const struct %s_%s *m);\n", P, m, P, m
        printf "bool %s_get_%s(const uint8_t *frame, size_t len, struct %s_%s *m);\n", P, m, P, m
        if (m in reply) printf "enum err %s_call_%s(struct ask *a, const struct %s_%s *m, const int *fds, struct %s_%s *answer, int *answer_fds);\n", P, m, P, m, P, reply[m]
      } else {
        printf "size_t %s_put_%s(uint8_t *buf, size_t cap, const struct %s_%s *m);\n", P, m, P, m
        printf "bool %s_get_%s(const uint8_t *p, size_t len, struct %s_%s *m);\n", P, m, P, m
        if (m in key) printf "size_t %s_key_%s(uint8_t *buf, size_t cap%s);\n", P, m, keyargs(m) }
      printf "enum { %s_MAX_%s = %d };\n\n", U, up(m), size[m] }
    print "#endif"
  } else if (out == "c") {
    printf "#include \"%s.h\"\n#include \"lib/ask.h\"\n#include <string.h>\n\n", base
    if (nm) { printf "const struct wire_msg %s_msgs[] = {\n", P
      for (i = 0; i < n; i++) { m = order[i]; if (kind[m] != "msg") continue
        if (dir[m] == "up") printf "\t{.number = %d, .name = \"%s\", .nfds = %d, .roles = %s, .states = %s, .next = %s, .once = %s},\n", num[m], up(m), fds[m], rmask[m], smask[m], nxt[m], (once[m] ? "true" : "false")
        else printf "\t{.number = %d, .name = \"%s\", .nfds = %d},\n", num[m], up(m), fds[m] }
      print "\t{.number = 0},\n};\n" }
    for (i = 0; i < n; i++) { m = order[i]
      if (kind[m] == "msg") {
        printf "size_t %s_put_%s(uint8_t *buf, size_t cap, uint64_t op, const struct %s_%s *m)\n{\n\tstruct wire_w w = wire_begin(buf, cap < %s_MAXFRAME ? cap : %s_MAXFRAME, %d, %s_VERSION, %d, op);\n\t(void)m;\n", P, m, P, m, U, U, num[m], U, fds[m]
        emit_put(m); print "\treturn wire_end(&w);\n}\n"
        printf "bool %s_get_%s(const uint8_t *frame, size_t len, struct %s_%s *m)\n{\n\tmemset(m, 0, sizeof *m);\n\tstruct wire_r r = wire_open(frame, len, %d, %s_VERSION, %d);\n", P, m, P, m, num[m], U, fds[m]
        emit_get(m); print "\treturn wire_done(&r);\n}\n"
        if (m in reply) { q = reply[m]
          printf "enum err %s_call_%s(struct ask *a, const struct %s_%s *m, const int *fds, struct %s_%s *answer, int *answer_fds)\n{\n", P, m, P, m, P, q
          printf "\tuint8_t *buf = ask_buffer(a);\n\tsize_t n = %s_put_%s(buf, ASK_BUFFER, ask_op(a), m);\n\tif (n == 0)\n\t\treturn ERR_INTERNAL_ERROR;\n", P, m
          printf "\tstruct ask_answer got;\n\tenum err e = ask_call(a, n, fds, %d, %d, &got);\n\tif (e != ERR_OK)\n\t\treturn e;\n", fds[m], fds[q]
          printf "\tif (!%s_get_%s(got.frame, got.len, answer)) {\n\t\task_drop(a, &got);\n\t\treturn ERR_STORE_UNAVAILABLE;\n\t}\n", P, q
          printf "\tif (answer_fds != NULL)\n\t\tmemcpy(answer_fds, got.fds, %d * sizeof(int));\n\telse\n\t\task_close_fds(&got);\n\treturn ERR_OK;\n}\n\n", fds[q] }
      } else {
        printf "size_t %s_put_%s(uint8_t *buf, size_t cap, const struct %s_%s *m)\n{\n\tstruct wire_w w = wire_plain(buf, cap);\n", P, m, P, m
        if (kind[m] == "record") printf "\twire_put_u8(&w, %d);\n", recver[m]
        if (nf[m] == 0) print "\t(void)m;"
        emit_put(m); print "\treturn wire_end_plain(&w);\n}\n"
        printf "bool %s_get_%s(const uint8_t *p, size_t len, struct %s_%s *m)\n{\n\tmemset(m, 0, sizeof *m);\n\tstruct wire_r r = wire_open_plain(p, len);\n", P, m, P, m
        if (kind[m] == "record") printf "\tuint8_t version = wire_get_u8(&r);\n\tif (version < 1 || version > %d)\n\t\treturn false;\n", recver[m]
        emit_get(m); print "\treturn wire_done(&r);\n}\n"
        if (m in key) { printf "size_t %s_key_%s(uint8_t *buf, size_t cap%s)\n{\n\tstruct wire_w w = wire_plain(buf, cap);\n", P, m, keyargs(m)
          k = split(key[m], a, " ")
          for (j = 1; j <= k; j++) { split(a[j], p, ":"); if (p[2] == "u64") printf "\twire_put_u64(&w, %s);\n", p[1]; else printf "\twire_put_key(&w, %s);\n", p[1] }
          print "\treturn wire_end_plain(&w);\n}\n" } } }
  } else if (out == "on.h") {
    printf "#ifndef %s_ON_H\n#define %s_ON_H\n#include \"%s.h\"\n\n", guard, guard, base
    printf "/* One function a message; the answering program writes them. The descriptors are the callee's. */\nstruct %s_from;\n", P
    for (i = 0; i < n; i++) { m = order[i]; if (kind[m] == "msg" && dir[m] == "up") printf "void %s_on_%s(struct %s_from *from, uint64_t op, const struct %s_%s *m, int *fds);\n", P, m, P, P, m }
    printf "\n/*\n * Checks one received frame against the table (known, permitted for this role in this state,\n * descriptors counted, decoded to its exact end), moves the state on and calls its function.\n * Returns NULL, or the reason for which the connection must be closed; then the caller still\n * owns the descriptors.\n */\nconst char *%s_dispatch(struct wire_conn *c, struct %s_from *from, const uint8_t *frame, size_t len, int *fds, int nfds);\n#endif\n", P, P
  } else if (out == "on.c") {
    printf "#include \"%s_on.h\"\n\nconst char *%s_dispatch(struct wire_conn *c, struct %s_from *from, const uint8_t *frame, size_t len, int *fds, int nfds)\n{\n\tconst struct wire_msg *row;\n\tuint64_t op;\n\tconst char *why = wire_admit(%s_msgs, %s_VERSION, c, frame, len, nfds, &row, &op);\n\tif (why != NULL)\n\t\treturn why;\n\tswitch (row->number) {\n", base, P, P, P, U
    for (i = 0; i < n; i++) { m = order[i]; if (kind[m] != "msg" || dir[m] != "up") continue
      printf "\tcase %s_%s: {\n\t\tstruct %s_%s m;\n\t\tif (!%s_get_%s(frame, len, &m))\n\t\t\treturn \"malformed %s\";\n\t\twire_accept(c, row);\n\t\t%s_on_%s(from, op, &m, fds);\n\t\treturn NULL;\n\t}\n", U, up(m), P, m, P, m, up(m), P, m }
    print "\tdefault:\n\t\treturn \"message of the wrong direction\";\n\t}\n}"
  } else if (out == "test.c") {
    # A table of every codec for the truncation test and the fuzz target.
    printf "#include \"%s.h\"\n#include \"tests/unit/codec_table.h\"\n\n", base
    for (i = 0; i < n; i++) { m = order[i]
      printf "static size_t fill_%s(uint8_t *buf, size_t cap, bool truth)\n{\n\tstruct %s_%s m = {0};\n\t(void)truth;\n", m, P, m
      for (k = 0; k < nf[m]; k++) { t = ft[m, k]; f = fn[m, k]
        if (t == "id") printf "\tm.%s = \"id-%d\";\n", f, k
        else if (t == "str") printf "\tm.%s = \"%s\";\n", f, (fm[m, k] >= 3 ? "abc" : "a")
        else if (t == "bytes") printf "\tm.%s = (struct wire_bytes){(const uint8_t *)\"\\001\\000\\377\", %d};\n", f, (fm[m, k] < 3 ? fm[m, k] : 3)
        else if (t == "strs") printf "\tm.%s_n = 1;\n\tm.%s[0] = \"x\";\n", f, f
        else if (t == "bool") printf "\tm.%s = truth;\n", f
        else printf "\tm.%s = 1;\n", f }
      if (kind[m] == "msg") printf "\treturn %s_put_%s(buf, cap, 7, &m);\n}\n", P, m; else printf "\treturn %s_put_%s(buf, cap, &m);\n}\n", P, m
      # What an older version said cannot come back as the same bytes; t_codecs reads those.
      now = kind[m] == "record" && recver[m] > 1 ? "len > 0 && p[0] == " recver[m] " && " : ""
      printf "static bool read_%s(const uint8_t *p, size_t len)\n{\n\tstruct %s_%s m;\n\treturn %s%s_get_%s(p, len, &m);\n}\n", m, P, m, now, P, m
      printf "static size_t again_%s(const uint8_t *p, size_t len, uint8_t *buf, size_t cap, uint64_t op)\n{\n\tstruct %s_%s m;\n\t(void)op;\n\tif (!%s_get_%s(p, len, &m))\n\t\treturn 0;\n\treturn %s_put_%s(buf, cap, %s&m);\n}\n", m, P, m, P, m, P, m, (kind[m] == "msg" ? "op, " : "") }
    printf "\nconst struct codec_row %s_codecs[] = {\n", P
    for (i = 0; i < n; i++) printf "\t{\"%s\", %s, %s_MAX_%s, %d, \"%s\", \"%s\", fill_%s, read_%s, again_%s},\n", order[i], (kind[order[i]] == "msg" ? "true" : "false"), U, up(order[i]), (kind[order[i]] == "record" ? recver[order[i]] : VER), reply[order[i]], words(order[i]), order[i], order[i], order[i]
    print "\t{0},\n};"
    printf "const struct codec_protocol %s_protocol = {%s, %d, %d, {", P, (nm ? P "_msgs" : "NULL"), VER, MAX
    for (i = 0; i < nrole; i++) printf "\"%s\", ", rolename[i]
    printf "NULL}, {"
    for (i = 0; i < nstate; i++) printf "\"%s\", ", statename[i]
    printf "NULL}, %s_codecs};\n", P
  } else if (out == "fuzz.c") {
    # Every answering function as a witness, for the fuzz target of the dispatcher.
    printf "#include \"%s_on.h\"\n#include \"tests/fuzz/fuzz_dispatch.h\"\n\n", base
    for (i = 0; i < n; i++) { m = order[i]; if (kind[m] != "msg" || dir[m] != "up") continue
      printf "void %s_on_%s(struct %s_from *from, uint64_t op, const struct %s_%s *m, int *fds)\n{\n\tstruct fuzz_room room = fuzz_room(from);\n\t(void)fds;\n\tfuzz_called(from, %s_%s, op, %s_put_%s(room.p, room.cap, op, m));\n}\n\n", P, m, P, P, m, U, up(m), P, m }
    printf "static const char *dispatch(struct wire_conn *c, void *from, const uint8_t *frame, size_t len, int *fds, int nfds)\n{\n\treturn %s_dispatch(c, from, frame, len, fds, nfds);\n}\n\n", P
    printf "const struct fuzz_protocol %s_fuzz = {%s_msgs, %s_ROLE__COUNT, %s_VERSION, dispatch};\n", P, P, U, U
  } else if (out == "dict") {
    # The first four bytes of each message: number, version, descriptors.
    for (i = 0; i < n; i++) { m = order[i]; if (kind[m] != "msg") continue
      printf "%s=\"\\x%02x\\x%02x\\x%02x\\x%02x\"\n", m, int(num[m] / 256), num[m] % 256, VER, fds[m] }
    for (i = 0; i < n; i++) if (order[i] in recver) printf "%s=\"\\x%02x\"\n", order[i], recver[order[i]]
  } else if (out == "md") {
    printf "| message | number | from | permitted in | then | descriptors | fields |\n| --- | --- | --- | --- | --- | --- | --- |\n"
  }
}
