#!/bin/sh
# Against the program of this build.
exec /usr/bin/python3 -B "${srcdir:-.}/tests/http/ingress.py" --program "$PWD/pinfold-fcgi"
