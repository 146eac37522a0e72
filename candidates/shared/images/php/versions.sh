#!/bin/sh
set -eu
share=/usr/local/share/percore
echo "php=$(php -n -r 'echo PHP_VERSION;')"
echo "php-threads=$(php -n -r 'echo PHP_ZTS ? "zts" : "nts";')"
if [ -s "$share/php-source" ]; then
    echo "php-source=$(cat "$share/php-source")"
fi
echo "jwt-library=$(cat "$share/jwt-library")"
if command -v nginx >/dev/null; then
    echo "nginx=$(nginx -v 2>&1 | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')"
fi
if [ -s "$share/versions" ]; then
    cat "$share/versions"
fi
