#!/bin/sh
# Against a program of this build whose calls can be made to fail.
exec /usr/bin/python3 -B "${srcdir:-.}/tests/fcgi/lack.py" ./tests/fault/faulty-fcgi
