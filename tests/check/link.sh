#!/bin/sh
# Each program needs the libraries of its own business and no other.
exec "${srcdir:-.}/tools/check-link.sh" .
