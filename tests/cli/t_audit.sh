#!/bin/bash
# pinfold audit verify and tail: every kind of tampering is named with its file and line. The log is written
# here, by the recipe of lib/audit_chain.h with other tools, so that the recipe is tested too.
# shellcheck source=tools/lib/wait.sh
. "$(dirname "$0")/../../tools/lib/wait.sh"
cli=${PINFOLD_CLI_UNDER_TEST:-./cli/pinfold}
root=$(mktemp -d /tmp/pinfold-audit.XXXXXX) || exit 1
trap 'rm -rf "$root"' EXIT
export PINFOLD_ROOT=$root
# Where this build looks for it, whatever its prefix.
dir=$(dirname "$("$cli" audit tail 2>&1 | sed -n 's/^pinfold: \(.*\): No such file.*/\1/p')")
good=0 bad=0
check() { if [ "$2" = "$3" ]; then good=$((good + 1)); else bad=$((bad + 1)); echo "FAIL $1: got <$2>, wanted <$3>"; fi; }
has() { case $2 in *"$3"*) good=$((good + 1)) ;; *) bad=$((bad + 1)); echo "FAIL $1: no <$3> in <$2>" ;; esac; }
case $dir in "$root"/*) mkdir -p "$dir" || exit 1 ;; *) echo "where is the log of $cli? $dir"; exit 1 ;; esac

prev=$(printf '0%.0s' {1..64}) seq=0
put() { # event, further members, file
	seq=$((seq + 1))
	local body='{"ts":1700000000000,"seq":'$seq',"event":"'$1'","tenant":"t","actor":"a","requestId":"r-'$seq'","run":""'$2',"prev":"'$prev'"'
	prev=$(printf '%s%s}' "$prev" "$body" | sha256sum | cut -d' ' -f1)
	printf '%s,"hash":"%s"}\n' "$body" "$prev" >>"$dir/$3"
}
fresh() {
	rm -f "$dir"/audit.log*
	cp "$root/good/"* "$dir/"
}
for _ in 1 2 3 4; do put run.create ',"agent":"x"' audit.log.2; done
for _ in 1 2 3; do put token.issue ',"tokenId":"k"' audit.log.1; done
for _ in 1 2 3 4 5; do put run.finish ',"state":"failed"' audit.log; done
mkdir "$root/good" && cp "$dir"/* "$root/good/"

said=$("$cli" audit verify 2>&1)
check "a whole log" $? 0
has "what is said of it" "$said" "the audit log is whole: 12 lines in 3 files, numbers 1 to 12"
check "as JSON" "$("$cli" --json audit verify)" '{"ok":true,"files":3,"lines":12,"first":1,"last":12,"torn":0,"undone":0,"lost":0}'
has "one file alone" "$("$cli" audit verify "$dir/audit.log.1" 2>&1)" "numbers 5 to 7 (older ones are gone)"

tampered() { # name, where:line, why; the files are tampered with already
	said=$("$cli" audit verify 2>&1)
	check "$1: status" $? 1
	has "$1: place" "$said" "$dir/$2: "
	has "$1: reason" "$said" "$3"
	said=$("$cli" --json audit verify 2>&1)
	has "$1: JSON" "$said" '{"ok":false,"file":"'
	fresh
}
sed -i '2s/"agent":"x"/"agent":"y"/' "$dir/audit.log.2"
tampered "a changed byte" audit.log.2:2 "it was changed: its hash does not fit"
sed -i '3s/"hash":"./"hash":"z/' "$dir/audit.log.1"
tampered "no hash" audit.log.1:3 "cannot be read"
sed -i 3d "$dir/audit.log"
tampered "a removed line" audit.log:3 "1 line(s) are missing before it"
sed -i '2{h;d};3{G}' "$dir/audit.log.2"
tampered "swapped lines" audit.log.2:2 "missing before it"
sed -i '3p' "$dir/audit.log"
tampered "a doubled line" audit.log:4 "out of order or there twice"
sed -i '$d' "$dir/audit.log.2"
tampered "the end of an older generation" audit.log.1:1 "1 line(s) are missing before it"
truncate -s -10 "$dir/audit.log.2"
tampered "the end of an older generation, in a line" audit.log.2:4 "it has no end"
rm "$dir/audit.log.1"
tampered "a generation" audit.log:1 "3 line(s) are missing before it"
truncate -s -1 "$dir/audit.log"
tampered "a last line without its end" audit.log:5 "it has no end"
sed -i '2s/.*/nonsense/' "$dir/audit.log"
tampered "a line that is none" audit.log:2 "no line says that a crash cut it short"
printf 'nonsense\n' >>"$dir/audit.log"
tampered "a last line that is none" audit.log:6 "no line says that a crash cut it short"
printf 'a\0b\n' >>"$dir/audit.log"
tampered "a NUL" audit.log:6 "cannot be read"
head -c 20000 /dev/zero | tr '\0' x >>"$dir/audit.log"
tampered "an endless line" audit.log:6 "longer than a line can be"
# One who knows how to hash, in the middle: what follows shows it.
(prev=$(sed -n '2s/.*"prev":"\([0-9a-f]*\)".*/\1/p' "$dir/audit.log") seq=8
	head -1 "$dir/audit.log" >"$root/one" && put run.finish ',"state":"completed"' forged
	cat "$root/one" "$dir/forged" <(tail -n +3 "$root/good/audit.log") >"$dir/audit.log" && rm "$dir/forged")
tampered "a forged line with its hash" audit.log:3 "does not follow the line before it"

# What a crash cut short, and what the log says of itself.
(put audit.lost ',"count":4' audit.log
	printf '{"ts":17' >>"$dir/audit.log"
	digest=$(printf '{"ts":17' | sha256sum | cut -d' ' -f1)
	echo >>"$dir/audit.log"
	put audit.torn ',"bytes":8,"digest":"'"$digest"'"' audit.log
	put audit.undone ',"of":3' audit.log)
has "a torn line that is explained" "$("$cli" audit verify 2>&1)" "1 cut short by a crash, 1 undone, 4 never written"
sed -i 's/^{"ts":17$/{"ts":18/' "$dir/audit.log"
tampered "a torn line that was changed" audit.log:7 "no line says that a crash cut it short"

check "tail" "$("$cli" audit tail -n 2 | cut -d, -f2)" "$(printf '"seq":11\n"seq":12')"
check "tail of all" "$("$cli" audit tail -n 100 | wc -l)" 5
printf 'x\033[2J\r\n' >>"$dir/audit.log"
check "tail is safe on terminals" "$("$cli" audit tail -n 1)" 'x\x1b[2J\x0d'
fresh
"$cli" audit tail -n 1 -f >"$root/followed" 2>&1 &
pid=$!
followed() { [ "$(wc -l <"$root/followed")" -ge "$1" ]; }
wait_until followed 1
put run.finish '' audit.log
wait_until followed 2
mv "$dir/audit.log" "$dir/audit.log.1"
put run.create '' audit.log
wait_until followed 3
kill $pid
check "tail follows, also into the next file" "$(cut -d, -f2 "$root/followed" | tr '\n' ' ')" '"seq":12 "seq":13 "seq":14 '
check "no number" "$("$cli" audit tail -n 0 2>/dev/null; echo $?)" 2
check "no command" "$("$cli" audit 2>/dev/null; echo $?)" 2
rm "$dir"/audit.log* && ln -s /etc/passwd "$dir/audit.log"
check "a link is not followed" "$("$cli" audit verify >/dev/null 2>&1; echo $?)" 1
rm "$dir/audit.log" && mkfifo "$dir/audit.log"
check "nor a pipe waited for" "$("$cli" audit tail >/dev/null 2>&1; echo $?)" 1
rm "$dir/audit.log"
has "no log" "$("$cli" audit verify 2>&1)" "No such file"
echo "$good passed, $bad failed"
[ $bad = 0 ]
