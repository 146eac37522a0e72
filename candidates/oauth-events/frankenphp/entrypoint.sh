#!/bin/sh
# Starts FrankenPHP: the library behind net/http where the image has it, else the
# published server. Workers are database connections; FrankenPHP needs one thread more.
set -eu

if command -v frankenphp-server >/dev/null; then
    exec frankenphp-server
fi
: "${PERCORE_POOL:?set PERCORE_POOL to the number of workers}"
: "${PERCORE_CORES:?set PERCORE_CORES to the number of cores}"
PERCORE_THREADS=$((PERCORE_POOL + 1))
GOMAXPROCS=$PERCORE_CORES
export PERCORE_THREADS GOMAXPROCS
exec frankenphp run --config "$(dirname "$0")/Caddyfile" --adapter caddyfile
