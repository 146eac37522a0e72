#!/bin/sh
set -eu
cat /usr/local/share/percore/versions
