#!/bin/sh
# Against the program of this build.
exec /usr/bin/python3 -B "${srcdir:-.}/tests/fcgi/raw.py" --program ./pinfold-fcgi
