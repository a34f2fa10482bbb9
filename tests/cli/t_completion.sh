#!/bin/bash
# pinfold completion: every command is offered, and of each what its own usage names.
cli=${PINFOLD_CLI_UNDER_TEST:-./cli/pinfold}
good=0 bad=0
check() { if [ "$2" = "$3" ]; then good=$((good + 1)); else bad=$((bad + 1)); echo "FAIL $1: got <$2>, wanted <$3>"; fi; }
has() { case " $2 " in *" $3 "*) good=$((good + 1)) ;; *) bad=$((bad + 1)); echo "FAIL $1: no <$3> in <$2>" ;; esac; }
script=$("$cli" completion bash)
check "a script" $? 0
eval "$script" || exit 1
offered() { # the words of a line, the last one begun
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_pinfold
	echo "${COMPREPLY[*]}"
}
commands=$("$cli" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
check "commands" "$(wc -w <<<"$commands" | sed 's/ //g')" "$(offered pinfold '' | tr ' ' '\n' | grep -cv -e '^-' -e '^help$')"
for c in $commands; do
	has "a command" "$(offered pinfold '')" "$c"
	for word in $("$cli" "$c" --help | sed -n '/^usage/,/^$/p' | grep -oE -- '--[a-z][a-z-]+'); do
		[ "$word" = --help ] || has "an option of $c" "$(offered pinfold "$c" '')" "$word"
	done
done
check "begun" "$(offered pinfold app)" approve
check "options of all" "$(offered pinfold --json --server https://x --token-file run ps --st)" --status
check "values" "$(offered pinfold ps --status qu)" queued
check "words" "$(offered pinfold device p)" pair
check "a second one" "$(offered pinfold store back)" backup
check "none of another's" "$(offered pinfold show --all)" ""
fish=$("$cli" completion fish)
for c in $commands; do
	has "fish: a command" "$(sed -n 's/^complete -c pinfold -n __fish_use_subcommand -a \([a-z]*\) -d .*/\1/p' <<<"$fish" | xargs)" "$c"
	for word in $("$cli" "$c" --help | sed -n '/^usage/,/^$/p' | grep -oE -- '--[a-z][a-z-]+'); do
		[ "$word" = --help ] || has "fish: an option of $c" "$(sed -n "s/^complete .*_from $c' -a '\(.*\)'$/\1/p" <<<"$fish" | xargs)" "$word"
	done
done
check "fish: a line is as all" "$(grep -cv "^complete -c pinfold -n " <<<"$fish")" 0
check "wrong use" "$("$cli" completion tcsh >/dev/null 2>&1; echo $?)" 2
if command -v fish >/dev/null; then
	check "fish reads it" "$(fish -c "$fish
complete -C'pinfold app' | cut -f 1")" approve
fi
if command -v zsh >/dev/null; then
	check "zsh reads it" "$(zsh -fc 'autoload -U compinit && compinit -u -D && eval "$('"$cli"' completion zsh)" && echo yes' 2>&1)" yes
fi
echo "$good passed, $bad failed"
[ $bad = 0 ]
