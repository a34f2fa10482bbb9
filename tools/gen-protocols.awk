# Makes the manual page of the private protocols: each line "@FILE" of a template becomes that file's messages, with what its comments
# say of them.
#
#   awk -v src=DIR -f tools/gen-protocols.awk man/pinfold-protocols.7.in
#
# A comment belongs to the message, or the field, that follows it or stands before it in its line; those that are rules ("# ---")
# begin a part of their own and are not told. Refused: a file that cannot be read or has no message.

function die(why) { printf "%s\n", why > "/dev/stderr"; failed = 1; exit 1 }
# A line of text for mdoc: nothing in it is a request or an escape.
function text(s,    at) {
  gsub(/\\/, "\\e", s)
  # A sentence begins a line.
  while (match(s, /[.?!] [A-Z]/)) { s = substr(s, 1, RSTART) "\n" substr(s, RSTART + 2) }
  if (s ~ /^[.']/) s = "\\&" s
  return s
}
function say(s) { if (s != "") print text(s) }
function close_fields() { if (fields) print ".El"; fields = 0 }
function close_list() { close_fields(); if (open_list) print ".El"; open_list = 0 }
function item(line, about) {
  close_fields()
  if (!open_list) print ".Bl -tag -width Ds"
  open_list = 1
  print ".It " line
  n = split(about, parts, "\n")
  for (i = 1; i <= n; i++) say(parts[i])
}
function field(line,    w, n, i, name, shape, about) {
  about = ""
  if (match(line, /#/)) { about = substr(line, RSTART + 1); line = substr(line, 1, RSTART - 1); sub(/^ */, "", about) }
  n = split(line, w, " ")
  shape = w[1]
  for (i = 3; i <= n; i++) shape = shape " " w[i]
  if (!fields) print ".Bl -tag -width Ds -compact"
  fields = 1
  print ".It Li " w[2] " No " shape
  say(about)
}
function one_file(path,    line, w, n, i, note, of, found) {
  note = ""; of = 0; found = 0
  while ((getline line < path) > 0) {
    of++
    if (line ~ /^[ \t]*#/) {
      sub(/^[ \t]*# ?/, "", line)
      if (line ~ /^---/) note = ""
      else note = note == "" ? line : note "\n" line
      continue
    }
    if (line ~ /^[ \t]*$/) { note = ""; continue }
    if (line ~ /^ /) { if (note != "") { n = split(note, w, "\n"); for (i = 1; i <= n; i++) if (!fields) say(w[i]) } note = ""; field(line); continue }
    rest = ""
    if (match(line, /#/)) { rest = substr(line, RSTART + 1); sub(/^ */, "", rest); line = substr(line, 1, RSTART - 1) }
    n = split(line, w, " ")
    if (rest != "") note = note == "" ? rest : note "\n" rest
    if (w[1] == "protocol") {
      close_list()
      printf "Version %s; frames of at most %s bytes.\n", w[3], w[4]
      note = ""
    } else if (w[1] == "msg") {
      found++
      where = w[4] == "up" ? "from " w[5] ", in " w[6] : "down"
      gsub(/,/, " ", where); sub(/ /, " ", where)
      more = ""
      for (i = w[4] == "up" ? 8 : 5; i <= n; i++) {
        if (w[i] ~ /^fds=[1-9]/) more = more "; " substr(w[i], 5) " descriptor" (w[i] == "fds=1" ? "" : "s")
        if (w[i] == "once") more = more "; once"
        if (w[i] ~ /^reply=/) more = more "; answer " substr(w[i], 7)
      }
      item("Cm " w[2] " No (" w[3] ", " where more ")", note)
      note = ""
    } else if (w[1] == "struct") {
      item("Vt " w[2] " No (a part)", note)
      note = ""
    }
  }
  close(path)
  if (of == 0) die(path ": cannot be read")
  if (!found) die(path ": no message")
  close_list()
}
/^@/ { one_file(src "/" substr($0, 2)); next }
{ print }
END { if (failed) exit 1 }
