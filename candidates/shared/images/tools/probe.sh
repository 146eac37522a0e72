#!/bin/sh
# The reference probe in the foreground, with one worker per core of the budget.
set -eu
exec nginx -c /etc/percore/probe.conf -g "daemon off; worker_processes ${PERCORE_CORES:-1};"
