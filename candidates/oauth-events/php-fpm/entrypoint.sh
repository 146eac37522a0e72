#!/bin/sh
# Runs nginx and php-fpm side by side: stops both on SIGTERM, and when one of the two
# ends by itself the other is stopped and the container fails.
set -eu

here=$(dirname "$0")
: "${PERCORE_POOL:?set PERCORE_POOL to the number of php-fpm children}"
: "${PERCORE_CORES:?set PERCORE_CORES to the number of cores}"

mkdir -p /run/percore
sed "s/@CORES@/$PERCORE_CORES/" "$here/nginx.conf.in" >/run/percore/nginx.conf
sed "s/@POOL@/$PERCORE_POOL/" "$here/php-fpm.conf.in" >/run/percore/php-fpm.conf

# Runs a program, passes SIGTERM on to it, and tells the main shell when it ended.
supervise() {
    trap 'kill -TERM "$child" 2>/dev/null || :' TERM
    "$@" &
    child=$!
    wait "$child" || :
    trap '' TERM
    wait "$child" || :
    kill -USR1 $$
}

stopping=no
failed=0
trap 'stopping=yes' TERM INT
trap 'test "$stopping" = yes || failed=1; stopping=yes' USR1

supervise php-fpm --nodaemonize --fpm-config /run/percore/php-fpm.conf &
fpm=$!
supervise nginx -c /run/percore/nginx.conf &
web=$!

while [ "$stopping" = no ]; do
    wait || :
done
kill -TERM "$fpm" "$web" 2>/dev/null || :
wait "$fpm" || :
wait "$web" || :
exit "$failed"
