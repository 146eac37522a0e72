#!/bin/sh
set -eu
echo "postgresql=$(postgres --version | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')"
echo "postgresql-package=$(dpkg-query -W -f '${Version}' postgresql-17)"
