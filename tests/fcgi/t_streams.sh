#!/bin/sh
# Event streams against the program of this build.
exec /usr/bin/python3 -B "${srcdir:-.}/tests/fcgi/streams.py" ./pinfold-fcgi
