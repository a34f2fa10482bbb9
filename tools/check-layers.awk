# Checks every #include against LAYERS.
#
#   awk -f tools/check-layers.awk LAYERS lib/buf.c lib/buf.h ...      (names relative to the top folder)
#
# The first file says, one folder a line, which project folders it may include from and which headers of
# other libraries (<name.h> exactly, <folder/> everything below). Refused: a quoted include that does not
# name its folder, a folder without a line, a project folder or a library that the line does not name. What
# is neither in LAYERS nor a header of the C library or the kernel is an unknown library and refused too.

function complain(why) { printf "%s:%d: %s\n", FILENAME, FNR, why; bad = 1 }
BEGIN {
  k = split("assert complex ctype dirent dlfcn elf endian err errno fcntl fnmatch ftw getopt glob grp inttypes iso646 " \
    "langinfo libgen limits link locale malloc math mntent netdb poll pthread pwd regex sched search semaphore setjmp " \
    "shadow signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings syslog " \
    "termios threads time uchar unistd utime wchar wctype", a, " ")
  for (i = 1; i <= k; i++) plain[a[i] ".h"] = 1
}
FNR == 1 { nfile++; dir = FILENAME; sub(/\/.*/, "", dir) }
nfile == 1 {
  sub(/#.*/, "")
  if (NF) known[$1] = 1
  for (i = 2; i <= NF; i++) if ($i ~ /^</) outside[$1, $i] = 1; else may[$1, $i] = 1
  next
}
FNR == 1 && !(dir in known) { complain("the folder " dir " has no line in LAYERS") }
!/^[ \t]*#[ \t]*include/ { next }
/"/ {
  split($0, q, "\"")
  if (q[2] == "config.h") next
  if (q[2] !~ /^[a-z]+\/[a-z0-9_\/]+\.(h|c|inc)$/) { complain("\"" q[2] "\" does not name its folder"); next }
  to = q[2]; sub(/\/.*/, "", to)
  if (!((dir, to) in may) && dir != to) complain(dir " may not include " q[2])
  next
}
/</ {
  h = $0; sub(/^[^<]*</, "", h); sub(/>.*/, "", h)
  if (h in plain || h ~ /^(sys|linux|asm|net|netinet|arpa)\/[a-z0-9_\/-]+\.h$/) next
  folder = h; sub(/\/.*/, "/", folder)
  if (!((dir, "<" h ">") in outside) && !((dir, "<" folder ">") in outside)) complain(dir " may not include <" h ">")
  next
}
{ complain("an include that is neither quoted nor in angle brackets") }
END { exit bad }
