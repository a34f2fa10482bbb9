#!/bin/sh
# The page in a real browser, behind this instance's web server. What only shows itself in the page is looked at in front of one
# build; a sanitized one is asked what a person who walks through the page asks it.
parts="walk hostile look notices fronts"
ldd "$PINFOLD_INSTANCE/usr/libexec/pinfold/pinfold-fcgi" | grep -q 'lib[atu]*san' && parts=walk
exec "$(dirname "$0")/../page/run.sh" $parts
