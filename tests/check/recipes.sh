#!/bin/bash
# The recipes of HACKING.md, followed to the letter in a copy of the tree: a public route, an error that it answers, a
# message with which it asks the store, a setting that it shows. After each the tree builds, its tests pass, and fewer
# than ten lines were changed outside the handlers themselves (docs/ are counted apart: "make docs" writes them).
#
# Needs root, as the store's tests do. Not part of make check: it builds the tree once more, without optimisation.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
work=$(mktemp -d /tmp/pinfold-recipes.XXXXXX) || exit 1
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
tree=$work/tree build=$work/build log=$work/log
passed=0 failed=0
TAB=$(printf '\t')
git_() { git -C "$tree" -c user.name=tests -c user.email=tests@invalid -c core.hooksPath=/dev/null "$@"; }
count() { # count WHAT STATUS [LOG]
	if [ "$2" = 0 ]; then
		passed=$((passed + 1)) && echo "ok    $1"
	else
		failed=$((failed + 1)) && echo "FAIL  $1"
		[ -z "${3-}" ] || tail -n 15 "$3"
	fi
}
# after FILE PATTERN: standard input behind the last line with this pattern, | being a tab in tables.
after() {
	local text
	text=$(case $1 in spec/*.tab) tr '|' "$TAB" ;; *) cat ;; esac)
	grep -qE "$2" "$tree/$1" || { count "$1 has a line like $2" 1; return; }
	TEXT=$text PATTERN=$2 perl -0pi -e 's/\A(.*^[^\n]*(?:$ENV{PATTERN})[^\n]*\n)/$1$ENV{TEXT}\n/ms' "$tree/$1"
}
also() { sed -i "s|$2|& $3|" "$tree/$1"; } # also FILE WORD ANOTHER: on the same line

# --- the four recipes -------------------------------------------------------------------------------------------------
route() {
	after spec/routes.tab '^public.*model_profiles' <<<'public|GET|/v1/recipe|api,device|-|0|-|-|recipe'
	printf '%s\n' 'about|recipe|A recipe.' 'answer|recipe|200|application/json|Alive|-|It is.' | after spec/responses.tab '^answer.model_profiles'
	after tests/vectors/promised.tab '^route .*model_profiles' <<<'route GET /v1/recipe recipe for api,device body none 0 rights none'
	also fcgi/Makefile.inc handlers/health.c handlers/recipe.c
	also man/pinfold-api.7 'GET /v1/limits ,' 'GET /v1/recipe ,'
	after tests/fcgi/routes.py 'check\("another tenant.s limits are its own"' <<<'    check("a recipe", get("/v1/recipe", rig.device).json["ok"] is True)'
	handler ''
}
error() {
	after spec/errors.tab '^[0-9]' <<<'999|recipe_missing|404|no|There is no such recipe. Ask without a condition.'
	after spec/responses.tab '^answer.recipe' <<<'error|recipe|recipe_missing'
	after tests/vectors/promised.tab '^error ' <<<'error 999 recipe_missing 404'
	after tests/fcgi/routes.py 'check\("a recipe"' <<<'    check("no recipe", refused(get("/v1/recipe", more=[("HTTP_IF_NONE_MATCH", "x")]), 404, "recipe_missing"))'
	handler '	if (rq->in->if_none_match != NULL) {
		reply_error(rp, ERR_RECIPE_MISSING, NULL, NULL);
		return;
	}'
}
message() {
	after spec/store.msg '^ ' <<<'msg RECIPE_GET 9000 up fcgi READY READY fds=0 reply=RECIPE_IS
  id tenant
msg RECIPE_IS 9001 down fds=0
  u32 count'
	after tests/vectors/promised.tab '^store ' <<<'store RECIPE_GET 9000 from fcgi in READY to READY fds 0 replies recipe_is has id tenant
store RECIPE_IS 9001 down fds 0 has u32 count'
	also store/Makefile.inc store/op_basic.c store/op_recipe.c
	cat >"$tree/store/op_recipe.c" <<'C'
/* How many recipes a tenant has. Trusts nothing but the tenant's name that the public side has proven. */
#include "store/op.h"

static enum err op_recipe_get(struct txn *t, const struct st_recipe_get *m, int *fds, struct st_recipe_is *a, int *out)
{
	(void)t;
	(void)m;
	(void)fds;
	(void)out;
	a->count = 0;
	return ERR_OK;
}
ST_OP(recipe_get, recipe_is, 0, 0)
C
	handler '	struct st_recipe_get m = {.tenant = rq->who->tenant};
	struct st_recipe_is is;
	enum err e = st_call_recipe_get(rq->ask, &m, NULL, &is, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}'
}
setting() {
	after spec/conf.msg '^  u32 max_boxes' <<<'  u32 recipes           # that are shown'
	after spec/conf.tab '^machine	max_boxes' <<<'machine	recipes	number	global.recipes	3	1	99	reload	How many recipes are shown.'
	after tests/vectors/promised.tab '^conf GLOBAL .*max_boxes' <<<'conf GLOBAL 1 down fds 0 has u32 recipes'
	after CHANGELOG.md '^- First version' <<<'- The setting `recipes`.'
	after tests/fcgi/routes.py 'check\("a recipe"' <<<'    check("no recipes where none are set", get("/v1/recipe").json["recipes"] == 0)'
	shown='	jw_kint(&w, "recipes", rq->app->conf->global.recipes);'
	handler ''
}

shown= asks=
# handler TEXT: the route's own file, with TEXT more in it.
handler() {
	asks=$asks${1:+$1$'\n'}
	cat >"$tree/handlers/recipe.c" <<C
/* GET /v1/recipe: what the recipes of HACKING.md make. Trusts its caller no further than dispatch() does. */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/query.h"
#include "handlers/reply.h"
#include "handlers/request.h"

void handle_recipe(struct request *rq, struct reply *rp)
{
	char field[65];
	enum err wrong = query_none(rq, field);
	if (wrong != ERR_OK) {
		reply_error(rp, wrong, field, NULL);
		return;
	}
$asks	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kbool(&w, "ok", true);
	jw_kstr(&w, "service", "pinfold");
${shown:+$shown
}	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}
C
}

# --- and what they come to --------------------------------------------------------------------------------------------
tests="tests/unit/t_promises tests/unit/t_frames tests/unit/t_gates tests/unit/t_bounds tests/unit/t_limits tests/unit/t_codecs
	tests/unit/t_codec_mutations tests/unit/t_conf tests/store/t_store_rows tests/fcgi/t_routes.sh tests/cli/t_setup.sh tests/check/layers.sh
	tests/check/docs.sh tests/check/docs-fresh.sh tests/check/format.sh tests/check/size.sh tests/check/generators.sh"
lines() { # lines PATHSPEC...: added and taken away
	git_ diff --cached --numstat -- "$@" | awk '{ n += $1 + $2 } END { print n + 0 }'
}
follow() { # follow RECIPE
	local n test programs=
	"$1"
	for test in $tests; do case $test in *.sh) ;; *) programs="$programs $test" ;; esac; done
	make -C "$build" docs >"$log" 2>&1 && make -C "$build" -j"$(nproc)" >>"$log" 2>&1 && make -C "$build" -j"$(nproc)" $programs >>"$log" 2>&1
	n=$?
	count "$1: it builds" $n "$log"
	[ $n = 0 ] || return
	git_ add -A
	n=$(lines . ':!handlers/recipe.c' ':!store/op_recipe.c' ':!docs')
	[ "$n" -gt 0 ] && [ "$n" -lt 10 ]
	count "$1: $n lines outside its handler, $(lines docs) in docs/ by make docs" $?
	git_ diff --cached --stat -- . ':!docs' | sed 's/^/        /'
	for test in $tests; do
		(cd "$build" && srcdir=../tree timeout -k 5 300 "$(case $test in *.sh) echo ../tree/ ;; *) echo ./ ;; esac)$test") >"$log" 2>&1
		count "$1: $test" $? "$log"
	done
	git_ commit -qm "$1"
}

mkdir "$tree" "$build" || exit 1
(cd "$top" && { git ls-files -co --exclude-standard 2>/dev/null || find . -type f ! -path './build*'; } | tar -cf - -T -) | tar -C "$tree" -xf - || exit 1
git_ init -q && git_ add -A && git_ commit -qm "as it is" || exit 1
(cd "$tree" && autoreconf -fi) >"$log" 2>&1
(cd "$build" && ../tree/configure -q --enable-werror CFLAGS=-O0) >"$log" 2>&1 || {
	tail -n 20 "$log"
	echo "0 passed, 1 failed"
	exit 1
}
for recipe in route error message setting; do follow $recipe; done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
