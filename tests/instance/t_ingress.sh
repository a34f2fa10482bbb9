#!/bin/sh
# The ingress matrix over HTTP.
exec /usr/bin/python3 -B "$(dirname "$0")/../http/ingress.py" "$PINFOLD_URL" "$PINFOLD_INSTANCE/api-token"
