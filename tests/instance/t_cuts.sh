#!/bin/sh
# A thousand cuts of the event streams, with two clients written by others.
exec "$(dirname "$0")/../page/run.sh" cuts
