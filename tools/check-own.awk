# What is marked own_* is released wherever its scope ends: so it has a value from its declaration on, or is made
# before anybody may leave the scope. Plain builds set variables to nothing first and do not notice.
#   awk -f tools/check-own.awk FILE...
FNR == 1 { forget() }
/^[ \t]+own_[a-z]+ [^=(]*;/ {
	s = $0
	sub(/;.*/, "", s); gsub(/[*]/, "", s); sub(/^[ \t]*own_[a-z]+ /, "", s); sub(/^struct /, "", s); sub(/^[a-z_0-9]+ /, "", s)
	k = split(s, name, /, */)
	for (i = 1; i <= k; i++) since[name[i]] = FNR
	n += k
	next
}
n > 0 {
	for (v in since) if ($0 ~ ("(_init|_new|_open)\\(&" v "[,)]") || $0 ~ ("^[ \t]+" v " = ")) { delete since[v]; n-- }
	if (/(^|[^a-z_])(return|continue|break|goto)([^a-z_]|$)/)
		for (v in since) { print FILENAME ":" FNR ": " v ", declared in line " since[v] ", is released here before it is made"; bad = 1 }
	if (/^}/) forget()
}
function forget(v) { for (v in since) delete since[v]; n = 0 }
END { exit bad }
