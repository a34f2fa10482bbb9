# Generates the filters of system calls from spec/seccomp.tab (tab separated).
#
#   awk -v out=h|box|roles|md -f tools/gen-seccomp.awk spec/seccomp.tab
#
# A line: whose, what, calls, answer, reason; see the table's head.
# Refused: a call on one list twice, an argument that no filter can see, an answer that is no errno, no reason.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function symbol(s) { return s ~ /^\(?[A-Z][A-Z0-9_]*(\|[A-Z][A-Z0-9_]*)*\)?$/ || s ~ /^(0x[0-9a-f]+|[0-9]+)$/ }
# Argument and mask of N or N&MASK.
function argument(s, mask) {
  mask = "UINT32_MAX"
  if (s ~ /&/) { mask = s; sub(/^[^&]*&/, "", mask); sub(/&.*/, "", s) }
  if (s !~ /^[0-5]$/ || !symbol(mask) && mask != "UINT32_MAX") die("bad argument " s)
  return s ", " mask
}
function row(of, op, call, arg, value) { rows[of, nrows[of]++] = "\t{" op ", " call ", " arg ", " value "},\n" }
BEGIN {
  FS = "\t"; nof = 0
  split("box stored fcgi gateway steward push judge conf bridge", w, " "); for (i in w) known[w[i]] = 1
}
/^#/ || /^[ \t]*$/ { next }
NF != 5 { die("five columns, separated by one tab each, not " NF) }
$5 !~ /\.$/ { die("a reason is a sentence and ends with a full stop") }
$4 !~ /^(-|0|E[A-Z]+)$/ && ($2 != "end" || $4 != "KILL") || ($2 == "allow") != ($4 == "-") { die("bad answer " $4) }
$2 !~ /^(allow|refuse|only|when|end)$/ { die("allow, refuse, end, only or when, not " $2) }
{
  n = split($3, word, " ")
  error = $4 == "-" ? 0 : $4
  nof1 = split($1, ofs, ",")
  for (k = 1; k <= nof1; k++) {
    of = ofs[k]
    if (!(of in known)) die("of whom: " of)
    if (!(of in nrows)) { nrows[of] = 0; order[nof++] = of }
    if ($2 == "allow" || $2 == "refuse") {
      for (i = 1; i <= n; i++) {
        if (word[i] !~ /^[a-z][a-z0-9_]*$/) die("bad call " word[i])
        if ((of, word[i]) in seen) die("call " word[i] " of " of " twice")
        seen[of, word[i]] = 1
        list[of] = list[of] "#ifdef SYS_" word[i] "\n\t{FILTER_" toupper($2) ", SYS_" word[i] ", 0, 0, " error "},\n#endif\n"
      }
      continue
    }
    if ($2 == "end") { kills[of] = 1; continue }
    call = word[1]
    if (n < 2 || call !~ /^[a-z][a-z0-9_]*$/) die("CALL and what of it")
    if (n < 3 && $2 == "only") die("only needs a value")
    if (last[of] != call && ((of, call) in grouped)) die("the rows of " call " of " of " are not together")
    grouped[of, call] = 1; last[of] = call
    text = ""
    for (i = ($2 == "only" ? 3 : 2); i <= n; i++) {
      c = word[i]
      if ($2 == "only") { if (!symbol(c)) die("bad value " c); op = "ONE_OF"; arg = argument(word[2]); value = c }
      else if (c ~ /^[0-5]!=0$/) { op = "NONZERO"; arg = substr(c, 1, 1) ", 0"; value = "0" }
      else if (c ~ /^[0-5]&/) { op = "ANY"; arg = argument(c); value = "0" }
      else if (c ~ /^[0-5]=/) { op = "EQUAL"; arg = argument(substr(c, 1, 1)); value = substr(c, 3); if (!symbol(value)) die("bad value " value) }
      else die("bad condition " c)
      text = text "\t{FILTER_" op ", SYS_" call ", " arg ", " value "},\n"
    }
    tests[of] = tests[of] "#ifdef SYS_" call "\n" text "\t{FILTER_" ($2 == "only" ? "ELSE" : "THEN") ", SYS_" call ", 0, 0, " error "},\n#endif\n"
  }
  md = md sprintf("| %s | %s | %s | %s | %s |\n", $1, $2, gensub_bars($3), $4, $5)
  count++
}
function gensub_bars(s) { gsub(/\|/, "\\|", s); gsub(/^| /, "` `", s); sub(/^` /, "", s); return s "`" }
END {
  if (failed) exit 1
  if (!count) { print FILENAME ": no rows" > "/dev/stderr"; exit 1 }
  print out == "md" ? "" : "/* Generated from spec/seccomp.tab by tools/gen-seccomp.awk; do not edit. */"
  if (out == "h") {
    print "#ifndef GEN_SECCOMP_H\n#define GEN_SECCOMP_H\n#include \"lib/filter.h\"\n"
    for (i = 0; i < nof; i++) printf "extern const struct filter_rows filter_%s;\n", order[i]
    print "#endif"
  } else if (out == "box" || out == "roles") {
    nh = split("gen/seccomp.h errno.h linux/prctl.h netinet/in.h netinet/tcp.h netinet/udp.h sched.h fcntl.h linux/memfd.h sys/ioctl.h sys/mman.h sys/resource.h sys/shm.h sys/socket.h sys/stat.h sys/syscall.h", h, " ")
    for (i = 1; i <= nh; i++) print (i == 1 ? "#include \"" h[i] "\"" : "#include <" h[i] ">")
    print "#ifndef PR_SET_VMA\n#define PR_SET_VMA 0x53564d41\n#endif"
    for (i = 0; i < nof; i++) {
      of = order[i]
      if ((of == "box") != (out == "box")) continue
      printf "\nstatic const struct filter_row rows_%s[] = {\n%s%s};\n", of, tests[of], list[of]
      printf "const struct filter_rows filter_%s = {rows_%s, sizeof rows_%s / sizeof *rows_%s, %s};\n", of, of, of, of, (of in kills) ? "true" : "false"
    }
  } else if (out == "md") {
    printf "## System calls\n\n%d rows, of spec/seccomp.tab; what is on no list of allowed calls does not exist (ENOSYS), calls of another architecture end the process.\n\n", count
    print "| of | | calls | answer | reason |\n| --- | --- | --- | --- | --- |"
    printf "%s", md
  } else { print "gen-seccomp.awk: out must be h, box, roles or md" > "/dev/stderr"; exit 1 }
}
