#!/bin/sh
# Raw FastCGI at the instance's own socket.
exec /usr/bin/python3 -B "$(dirname "$0")/../fcgi/raw.py" "$PINFOLD_INSTANCE/run/pinfold/public/fcgi.sock" "$PINFOLD_INSTANCE/api-token" default
