#!/bin/sh
# Against the programs of this build; with the real store where its uids can be had.
[ "$(id -u)" = 0 ] && [ -x ./pinfold-stored ] && store=./pinfold-stored
exec /usr/bin/python3 -B "${srcdir:-.}/tests/http/ingress.py" --program ./pinfold-fcgi $store
