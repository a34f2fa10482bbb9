#!/bin/bash
# ./quickstart --once repairs the sample and says so: patch, passed check, status 0, nothing left.
top=$(cd "$(dirname "$0")/../.." && pwd)
out=$(PINFOLD_BUILD=${PINFOLD_BUILD:-$top/build-check} env -u OPENAI_API_KEY "$top/quickstart" --once 2>&1)
status=$?
printf '%s\n' "$out"
bad=0 good=0
expect() { if printf '%s\n' "$out" | grep -qE -- "$1"; then good=$((good + 1)); else bad=$((bad + 1)); echo "FAIL expected: $1"; fi; }
[ $status = 0 ] && good=1 || { bad=1; echo "FAIL exit status $status"; }
expect 'SCRIPTED MODEL'
expect 'run\.queued'
expect 'run\.completed'
expect '^  \+.*return a \+ b'
expect 'passed check-1: python3 -m unittest discover'
expect 'run [0-9a-f-]{36}: completed'
ls -d /tmp/pinfold.?????? >/dev/null 2>&1 && for d in /tmp/pinfold.??????; do ps -eo args | grep -v grep | grep -qF "$d/" || { bad=$((bad + 1)); echo "FAIL left: $d"; }; done
echo "$good passed, $bad failed"
[ $bad = 0 ]
