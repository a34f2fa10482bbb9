#!/bin/sh
# Each generator takes the tables of the tree, and refuses each bad one below with file and line.
src=$(cd "${srcdir:-.}" && pwd)
awk=${AWK:-awk}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
# Most tables come by a pipe, whose reader is a shell of its own: counts and complaints are lines in files.
TAB=$(printf '\t')

run() { # generator, file
	case $1 in
	msg) $awk -v base=gen/x -v out=c -f "$src/tools/gen-msg.awk" "$2" ;;
	errors) $awk -v out=c -f "$src/tools/gen-errors.awk" "$2" ;;
	routes) $awk -v out=h -f "$src/tools/gen-routes.awk" "$2" ;;
	fsm) $awk -v out=c -f "$src/tools/gen-fsm.awk" "$src/spec/errors.tab" "$2" ;;
	audit) $awk -v out=c -f "$src/tools/gen-audit.awk" "$2" ;;
	conf) $awk -v out=c -f "$src/tools/gen-conf.awk" "$src/spec/conf.msg" "$2" ;;
	metrics) $awk -v out=c -f "$src/tools/gen-metrics.awk" "$2" ;;
	limits) $awk -v out=h -f "$src/tools/gen-limits.awk" "$src/spec/routes.tab" "$src/spec/schema.tab" "$2" ;;
	openapi) $awk -v out=json -f "$src/tools/gen-openapi.awk" "$src/spec/errors.tab" "$src/spec/routes.tab" "$src/spec/schema.tab" \
		"$src/spec/limits.tab" "$src/spec/reasons.tab" "$2" ;;
	walls) $awk -v out=c -f "$src/tools/gen-walls.awk" "$2" ;;
	seccomp) $awk -v out=box -f "$src/tools/gen-seccomp.awk" "$2" ;;
	text) $awk -v out=h -f "$src/tools/gen-text.awk" "$2" ;;
	reasons) $awk -v out=c -f "$src/tools/gen-reasons.awk" "$2" ;;
	attacks) $awk -v out=inside -f "$src/tools/gen-attacks.awk" "$src/spec/walls.tab" "$2" ;;
	fields) $awk -v out=c -f "$src/tools/gen-fields.awk" "$2" ;;
	schema) $awk -v out=c -f "$src/tools/gen-schema.awk" "$src/spec/errors.tab" "$2" ;;
	esac
}
takes() { # generator, file
	echo >>count
	run "$1" "$2" >out 2>err && [ -s out ] || echo "gen-$1.awk refuses $2: $(cat err)" >>bad
}
# refuses GENERATOR WORDS: the table is standard input, | stands for a tab; WORDS must be in the reason.
refuses() {
	echo >>count
	if [ "$1" = msg ] || [ "$1" = fsm ]; then cat >bad.in; else tr '|' "$TAB" >bad.in; fi
	if run "$1" bad.in >out 2>err; then
		echo "gen-$1.awk takes a table with: $2" >>bad
	elif ! grep -q "^bad.in:.*$2" err; then
		echo "gen-$1.awk refuses '$2' with another reason: $(cat err)" >>bad
	fi
}

for f in store sandbox bundle conf; do takes msg "$src/spec/$f.msg"; done
takes msg "$src/spec/records.rec"
takes errors "$src/spec/errors.tab"
takes text "$src/spec/text.tab"
echo 'mask|suffix|sk-|url|16|W.' | refuses text 'a mask is of'
echo 'mask|prefix|sk-|letters|16|W.' | refuses text 'a class is'
echo 'mask|prefix|sk-|url|7|W.' | refuses text 'least is 8'
echo 'mask|prefix|s|url|16|W.' | refuses text 'cannot be looked for'
echo 'mask|name|api_key|value|8|W.' | refuses text 'cannot be looked for'
printf 'mask|prefix|sk-|url|16|W.\nmask|prefix|sk-|url|17|W.\n' | refuses text 'twice'
echo 'mask|prefix|sk-|url|W.' | refuses text 'separated by one tab'
echo 'field|text|body|9|any|W.' | refuses text 'a cap is'
echo 'take|some|0001|W.' | refuses text 'all or line'
echo 'keep|body|0009|W' | refuses text 'full stop'
takes routes "$src/spec/routes.tab"
takes fsm "$src/spec/run.fsm"
takes fsm "$src/spec/sandbox.fsm"
takes fsm "$src/spec/course.fsm"
takes fsm "$src/spec/approval.fsm"
takes reasons "$src/spec/reasons.tab"
takes walls "$src/spec/walls.tab"
takes attacks "$src/spec/attacks.tab"
takes seccomp "$src/spec/seccomp.tab"
takes schema "$src/spec/schema.tab"
takes fields "$src/spec/fields.tab"
echo 'chat|top|model|model' | refuses fields 'separated by one tab'
echo 'claude|top|model|model|-' | refuses fields 'unknown format'
echo 'gemini|part|*|strip|-' | refuses fields 'can but be refused'
echo 'gemini|part|a,*|reject|-' | refuses fields 'can but be refused'
echo 'gemini|blob|kind|among|-' | refuses fields 'needs an argument'
echo 'chat|top|model|pass|-' | refuses fields 'unknown action'
echo 'chat|top|model|model|x' | refuses fields 'no argument belongs'
echo 'chat|top|tools|list|-' | refuses fields 'needs a place'
echo 'chat|top|n|only|-' | refuses fields 'needs an argument'
echo 'chat|top|choice|word|place' | refuses fields 'a word needs'
printf 'chat|top|model|model|-\nchat|top|model|strip|-\n' | refuses fields 'twice'
printf 'chat|top|tools|list|tool\nchat|tool|a|text|-\nchat|tool/b|c|text|-\n' | refuses fields 'none in others'
echo 'chat|top|tools|list|tool' | refuses fields 'no rows are of'
printf 'chat|top|model|model|-\nchat|tool|name|text|-\n' | refuses fields 'nothing leads to'
echo '*|*|file_id|forward|-' | refuses fields 'refused or left out'
echo '*|tool|file_id|reject|-' | refuses fields 'for all has the place'
printf '*|*|file_id|reject|-\n*|*|file-id|reject|-\n' | refuses fields 'bad name'
printf '*|*|file_id|reject|-\n*|*|fileid|reject|-\n' | refuses fields 'twice'
takes limits "$src/spec/limits.tab"
takes openapi "$src/spec/responses.tab"
takes audit "$src/spec/audit.tab"

takes conf "$src/spec/conf.tab"
set_() { tr '|' "$TAB" | refuses conf "$1"; }
echo 'machine|a|number|global.max_boxes|1|1|9|reload' | set_ 'nine columns'
echo 'machine|A|number|global.max_boxes|1|1|9|reload|S.' | set_ 'bad name'
printf 'machine|a|number|global.max_boxes|1|1|9|reload|S.\nmachine|a|number|global.max_boxes|1|1|9|reload|S.\n' | set_ 'a twice in machine'
printf 'agent|a|number|agent.pids|1|1|9|reload|S.\ntenant|a|number|tenant.max_steps|1|1|9|reload|S.\nagent|b|number|agent.pids|1|1|9|reload|S.\n' | set_ 'not together'
echo 'machine|a|figure|global.max_boxes|1|1|9|reload|S.' | set_ 'unknown type'
echo 'machine|a|word|global.mask_secrets|x|-|-|reload|S.' | set_ 'with or without words'
echo 'machine|a|number|global.nothing|1|1|9|reload|S.' | set_ 'no message has the field'
echo 'machine|a|number|global.public_url|1|1|9|reload|S.' | set_ 'cannot hold number'
echo 'machine|a|texts|global.push_hosts|-|0|33|reload|S.' | set_ 'holds 32 words'
echo 'machine|a|number|-|1|1|9|reload|S.' | set_ 'without a field'
echo 'machine|a|number|global.max_boxes|0|1|9|reload|S.' | set_ 'bounds around it'
echo 'machine|a|number|global.max_boxes|10|1|9|reload|S.' | set_ 'bounds around it'
echo 'provider|a|bool|provider.scripted|1|-|-|reload|S.' | set_ 'yes or no'
printf 'machine\ta\tword:x|y\tglobal.mask_secrets\tz\t-\t-\treload\tS.\n' >bad.words
run conf bad.words >out 2>err && echo "gen-conf.awk takes a default that is none of the words" >>bad
echo 'machine|a|number|global.max_boxes|1|1|9|never|S.' | set_ 'reload or a restart'
echo 'machine|a|number|global.max_boxes|1|1|9|reload|S' | set_ 'no sentence'

takes metrics "$src/spec/metrics.tab"
fig() { tr '|' "$TAB" | refuses metrics "$1"; }
echo 'pinfold_x_total|counter|stored|-' | fig 'separated by one tab'
echo 'other_x|gauge|stored|-|X.' | fig 'bad name'
printf 'pinfold_x|gauge|stored|-|X.\npinfold_x|gauge|fcgi|-|X.\n' | fig 'there twice'
echo 'pinfold_x|counter|stored|-|X.' | fig 'ends in _total'
echo 'pinfold_x_total|gauge|stored|-|X.' | fig 'ends in _total'
echo 'pinfold_x|histogram|stored|-|X.' | fig 'histogram is of seconds'
echo 'pinfold_x|summary|stored|-|X.' | fig 'unknown type'
echo 'pinfold_x|gauge|push|-|X.' | fig 'unknown process'
echo 'pinfold_x_seconds|histogram|stored|le|X.' | fig 'bad label'
echo 'pinfold_x|gauge|stored|a,b,c,d|X.' | fig 'more than 3'
echo 'pinfold_x|gauge|stored|-|No stop' | fig 'help is a sentence'

field='field|why|str|keep'
ev() { printf '%s\n' "$field"; cat; }
echo 'event|1|a.b|note|optional|stored|why' | ev >good.audit
tr '|' "$TAB" <good.audit >good.tab
takes audit good.tab
printf 'event|1|a.b|note|optional|stored|why\nevent|1|a.c|note|optional|stored|-\n' | ev | refuses audit 'number 1 of a.c is already a.b'
printf 'event|1|a.b|note|optional|stored|why\nevent|2|a.b|note|optional|stored|-\n' | ev | refuses audit 'event a.b used twice'
echo 'event|1|a.b|note|required|stored|why' | ev | refuses audit 'cannot be required'
echo 'event|1|a.b|commit|optional|fcgi|why' | ev | refuses audit 'only cause a note'
echo 'event|1|a.b|note|optional|root|why' | ev | refuses audit 'unknown role'
echo 'event|1|a.b|note|optional|fcgi|-' | ev | refuses audit 'needs a str field'
echo 'event|1|a.b|note|optional|stored|who' | ev | refuses audit 'unknown field who'
echo 'event|1|a.b|sometimes|optional|stored|why' | ev | refuses audit 'commit or note'
echo 'event|1|ab|note|optional|stored|why' | ev | refuses audit 'bad event name'
echo 'event|1|a.b|note|optional|stored|-' | ev | refuses audit 'no event has the field why'
echo 'field|hash|str|keep' | refuses audit 'is reserved'
echo 'field|n|int|redact' | refuses audit 'always kept'
echo 'field|n|text|keep' | refuses audit 'unknown type text'

refuses errors 'number 1 of b is already a' <<'END'
1|a|400|no|A.
1|b|400|no|B.
END
refuses errors 'is already dropped' <<'END'
1|dropped|400|no|A.
1|b|400|no|B.
END
refuses errors 'code a used twice' <<'END'
1|a|400|no|A.
2|a|400|no|B.
END
echo '1|a|299|no|A.' | refuses errors 'unknown status 299'
echo '1|a|400|maybe|A.' | refuses errors 'retry must be'
echo '1|a|400|no|' | refuses errors 'no sentence'
echo '0|a|400|no|A.' | refuses errors 'bad number'
echo '1|A|400|no|A.' | refuses errors 'bad code'
echo '# nothing' | refuses errors 'no errors'

refuses routes 'has the shape of line 1' <<'END'
public|GET|/v1/runs/{runId}|api|-|0|-|-|a
public|GET|/v1/runs/{id}|api|-|0|-|-|b
END
echo 'internal|GET|/x|run|-|0|-|-|a' | refuses routes 'needs an audience'
echo 'internal|GET|/x|api|model|0|-|-|a' | refuses routes 'run tokens only'
echo 'internal|GET|/x|run,device|model|0|-|-|a' | refuses routes 'run tokens only'
echo 'public|GET|/x|run|-|0|-|-|a' | refuses routes 'not for run tokens'
echo 'public|GET|/x|api|model|0|-|-|a' | refuses routes 'has no audience'
echo 'public|GET|/x|root|-|0|-|-|a' | refuses routes 'unknown principal'
echo 'public|GET|/x|none,api|-|0|-|-|a' | refuses routes 'stands alone'
echo 'public|BREW|/x|api|-|0|-|-|a' | refuses routes 'unknown method'
echo 'public|GET|/x/../y|api|-|0|-|-|a' | refuses routes 'bad path'
echo 'public|GET|/x/|api|-|0|-|-|a' | refuses routes 'bad path'
echo 'public|GET|/{a}:|api|-|0|-|-|a' | refuses routes 'bad path'
echo 'public|GET|/x:y|api|-|0|-|-|a' | refuses routes 'bad path'
echo 'public|GET|/{a}/{b}/{c}|api|-|0|-|-|a' | refuses routes 'more than two'
echo 'public|POST|/x|api|-|0|any|-|a' | refuses routes 'body limit of 0'
echo 'public|POST|/x|api|-|9|text/plain|-|a' | refuses routes 'unknown content type'
echo 'public|GET|/x|api|-|0|-|fly|a' | refuses routes 'unknown right'
echo 'public|GET|/x|api|-|0|-|-' | refuses routes 'nine columns'
echo 'outside|GET|/x|api|-|0|-|-|a' | refuses routes 'side must be'

echo 'b|f|text|yes|-|-|9|invalid_json' | refuses schema 'unknown type text'
echo 'b|f|string|yes|-|-|9|no_such_error' | refuses schema 'unknown error no_such_error'
echo 'b|f|string|yes|-|-|9|invalid_json|no_such_error' | refuses schema 'unknown error no_such_error'
echo 'b|f|string|yes|-|-|-|invalid_json' | refuses schema 'string needs a maximum'
echo 'b|f|array|yes|1|-|-|invalid_json' | refuses schema 'array needs a maximum'
echo 'b|f|integer|yes|3|2|-|invalid_json' | refuses schema 'min is above max'
echo 'b|f|integer|perhaps|1|2|-|invalid_json' | refuses schema 'required must be'
echo 'b|f.g|integer|yes|1|2|-|invalid_json' | refuses schema 'not in an object'
echo 'b|f[]|integer|yes|1|2|-|invalid_json' | refuses schema 'not in an array'
refuses schema 'b f twice' <<'END'
b|f|integer|yes|1|2|-|invalid_json
b|f|integer|yes|1|2|-|invalid_json
END

refuses limits 'a.b twice' <<'END'
a|b|1|bytes|A.
a|b|2|bytes|A.
END
refuses limits 'not together' <<'END'
a|b|1|bytes|A.
c|b|2|bytes|A.
a|d|2|bytes|A.
END
echo 'a|b|1|bytes' | refuses limits 'five columns'
echo 'a|b|1|bytes|' | refuses limits 'no unit or no sentence'
echo 'a|b|many|bytes|A.' | refuses limits 'a value is'
echo 'a|b|routes:nothing:body|bytes|A.' | refuses limits 'no route has'
echo 'a|b|schema:run_create:nothing:max|bytes|A.' | refuses limits 'no bound'
echo 'a|b|schema:run_create:files[]:max|bytes|A.' | refuses limits 'is no bound'

echo 'about|nothing|A.' | refuses openapi 'no public route has'
echo 'about|chat|A.' | refuses openapi 'no public route has'
echo 'answer|run_show|20|-|-|-|A.' | refuses openapi 'answer, handler'
echo 'answer|run_show|200|-|-|X-Unknown|A.' | refuses openapi 'unknown header'
echo 'query|run_show|x|text|A.' | refuses openapi 'unknown type text'
echo 'shape|S|a.b|string|yes|' | refuses openapi 'has no parent'
echo 'shape|S|a|text|yes|' | refuses openapi 'unknown type text'
echo 'verb|S|a' | refuses openapi 'unknown line'
echo 'answer|run_show|200|application/json|Nothing|-|A.' | refuses openapi 'no shape Nothing'
grep -v '^about.run_show' "$src/spec/responses.tab" >less.tab
echo >>count
run openapi less.tab >out 2>err && echo "gen-openapi.awk takes a route without a sentence" >>bad

# A good machine, then one word changed at a time.
machine='machine m
states a b c
public a b c
final c
events go end
a go:b refuse:internal_error
b keep go:c
c keep keep'
echo "$machine" >good.fsm
takes fsm good.fsm
echo "$machine" | sed 's/^b keep/b go:d/' | refuses fsm 'unknown state d'
echo "$machine" | sed 's/^b keep/b go:b/' | refuses fsm 'keep, not go:b'
echo "$machine" | sed 's/^final c/final d/' | refuses fsm 'unknown state d'
echo "$machine" | sed 's/internal_error/no_such_error/' | refuses fsm 'unknown error'
echo "$machine" | sed 's/^b keep go:c/b keep/' | refuses fsm 'no cell for end'
echo "$machine" | sed '/^b/d' | refuses fsm 'state b has no line'
echo "$machine" | sed 's/^c keep keep/c keep go:a/' | refuses fsm 'a way out of the final state c'
echo "$machine" | sed 's/^a go:b/a go:c/' | refuses fsm 'state b cannot be reached'
echo "$machine" | sed 's/^b keep go:c/b keep keep/; s/^a go:b refuse:internal_error/a go:b go:c/' | refuses fsm 'no final state can be reached from b'
echo "$machine" | sed 's/^b keep/b stay/' | refuses fsm 'a cell is'
echo "$machine" | sed 's/^final c/final c\nhome a/' | refuses fsm 'no way home from b'
echo "$machine" | sed 's/^final c/final c\nhome d/' | refuses fsm 'home STATE'
echo "$machine" | sed 's/^public a b c/public a b/' | refuses fsm 'one public word a state'

reasons='good|completed|Well.
bad|failed|Not well.
stopped|cancelled|Stopped.'
echo "$reasons" | tr '|' "$TAB" >good.reasons
takes reasons good.reasons
echo "$reasons" | sed 's/^bad/good/' | refuses reasons 'reason good twice'
echo "$reasons" | sed 's/failed/running/' | refuses reasons 'status running is not terminal'
echo "$reasons" | sed 's/|Well.//' | refuses reasons 'name, status, sentence'
echo "$reasons" | sed 's/^bad/b-d/' | refuses reasons 'bad name b-d'
echo "$reasons" | sed 's/Well[.]/Well/' | refuses reasons 'full stop'
echo "$reasons" | sed '/stopped/d' | refuses reasons 'a status has no reason'

attack='a-b|files|root|box|refused|try
c|checks|checks|plant|failed/bad|leave'
echo "$attack" | tr '|' "$TAB" >good.attacks
takes attacks good.attacks
echo "$attack" | sed 's/^c|/a-b|/' | refuses attacks 'attack a-b twice'
echo "$attack" | sed 's/^a-b/A/' | refuses attacks 'bad id A'
echo "$attack" | sed 's/root/roof/' | refuses attacks 'no wall roof'
echo "$attack" | sed 's/box/bag/' | refuses attacks 'how is'
echo "$attack" | sed 's/|try//' | refuses attacks 'id, class'
echo "$attack" | sed 's,failed/bad,bad,' | refuses attacks 'status/error'

wall='a|one|5.1|required|box|Why.|Then.
b|two|-|extra|machine|Why.|Then.'
echo "$wall" | tr '|' "$TAB" >good.walls
takes walls good.walls
echo "$wall" | sed 's/^b/a/' | refuses walls 'id a twice'
echo "$wall" | sed 's/two/one/' | refuses walls 'name one twice'
echo "$wall" | sed 's/5.1/6.2/' | refuses walls 'the baseline has no Linux 6.2'
echo "$wall" | sed 's/5.1/5/' | refuses walls 'a kernel is'
echo "$wall" | sed 's/extra/some/' | refuses walls 'required or extra'
echo "$wall" | sed 's/machine/host/' | refuses walls 'of the machine or of the box'
echo "$wall" | sed 's/Why\./Why/' | refuses walls 'full stop'
echo "$wall" | sed 's/|Then.//' | refuses walls 'seven columns'
echo '# none' | refuses walls 'from 1 to 62 walls'

echo 'box|allow|read write|-|Why.' | tr '|' "$TAB" >good.seccomp
takes seccomp good.seccomp
echo 'box|allow|read read|-|Why.' | refuses seccomp 'read of box twice'
echo 'box|allow|Read|-|Why.' | refuses seccomp 'bad call Read'
echo 'box|allow|read|EPERM|Why.' | refuses seccomp 'bad answer EPERM'
echo 'box|refuse|read|-|Why.' | refuses seccomp 'bad answer -'
echo 'box|deny|read|EPERM|Why.' | refuses seccomp 'allow, refuse, end, only or when'
echo 'agent|allow|read|-|Why.' | refuses seccomp 'of whom: agent'
echo 'box|allow|read|-|Why' | refuses seccomp 'full stop'
echo 'box|allow|read|-' | refuses seccomp 'five columns'
echo 'box|only|socket 0|EPERM|Why.' | refuses seccomp 'only needs a value'
echo 'box|only|socket 6 AF_UNIX|EPERM|Why.' | refuses seccomp 'bad argument 6'
echo 'box|only|socket 0 unix|EPERM|Why.' | refuses seccomp 'bad value unix'
echo 'box|when|ioctl 1>2|EPERM|Why.' | refuses seccomp 'bad condition'
echo 'box|when|ioctl|EPERM|Why.' | refuses seccomp 'CALL and what of it'
refuses seccomp 'the rows of ioctl of box are not together' <<'END'
box|when|ioctl 1=TIOCSTI|EPERM|Why.
box|when|mmap 1=2|EPERM|Why.
box|when|ioctl 1=TIOCSETD|EPERM|Why.
END

head='protocol x 1 500
role r
state s'
msg() { printf '%s\n' "$head"; cat; }
echo 'u8 v' | msg | refuses msg 'field outside a message'
printf 'msg A 1 up r s s fds=0\nmsg B 1 up r s s fds=0\n' | msg | refuses msg 'number 1 of B is already A'
printf 'msg A 1 up r s s fds=0\nmsg A 2 up r s s fds=0\n' | msg | refuses msg 'name A used twice'
echo 'msg A 1 up q s s fds=0' | msg | refuses msg 'unknown role q'
echo 'msg A 1 up r t s fds=0' | msg | refuses msg 'unknown state t'
echo 'msg A 1 up r s t fds=0' | msg | refuses msg 'unknown state t'
echo 'msg A 1 up r s s' | msg | refuses msg 'msg NAME NUMBER up'
echo 'msg A 1 sideways r s s fds=0' | msg | refuses msg 'direction'
echo 'msg A 1 down fds=0 s' | msg | refuses msg 'down message has no states'
echo 'msg A 1 up r s s fds=0 reply=B' | msg | refuses msg 'does not exist'
printf 'msg A 1 down fds=0\nu12 v\n' | msg | refuses msg 'unknown type u12'
printf 'msg A 1 down fds=0\nstr v\n' | msg | refuses msg 'has no maximum'
printf 'msg A 1 down fds=0\nstrs v 3\n' | msg | refuses msg 'needs a count and a maximum'
printf 'msg A 1 down fds=0\nu8 v\nu8 v\n' | msg | refuses msg 'field v twice'
printf 'msg A 1 down fds=0\nu8 v since=2\n' | msg | refuses msg 'since=VERSION of v'
printf 'record a 2\nu8 v since=3\n' | msg | refuses msg 'since=VERSION of v'
printf 'record a 2\nu8 v since=1\n' | msg | refuses msg 'since=VERSION of v'
printf 'record a 2\nu8 v since=2\nu8 w\n' | msg | refuses msg 'field w is older'
printf 'msg A 1 down fds=0\nbytes v 600\n' | msg | refuses msg 'the frame holds 500'

echo "$(wc -l <count) tables"
[ ! -e bad ] || { cat bad; exit 1; }
