#!/bin/sh
# Starts PostgreSQL on the cluster in the volume, and makes the cluster first
# when the volume is empty. Arguments that begin with "-" go to postgres
# (-c shared_buffers=128MB); any other command is run instead of it.
set -eu

case "${1:--}" in
-*) ;;
*) exec "$@" ;;
esac

if [ -z "${PERCORE_DB_PASSWORD:-}" ]; then
    echo "percore-postgres: PERCORE_DB_PASSWORD is empty: set the password of the user postgres" >&2
    exit 2
fi

volume=$(dirname "$PGDATA")
known=$volume/password
umask 077
chown postgres:postgres "$volume"

# Nothing below needs root.
if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid=postgres --regid=postgres --init-groups --inh-caps=-all "$0" "$@"
fi

remember() {
    printf '%s\n' "$PERCORE_DB_PASSWORD" >"$known.new"
    mv "$known.new" "$known"
}

if [ ! -d "$PGDATA" ]; then
    echo "percore-postgres: creating the cluster" >&2
    rm -rf "$PGDATA.new"
    printf '%s\n' "$PERCORE_DB_PASSWORD" >"$volume/initdb-password"
    initdb --pgdata="$PGDATA.new" --username=postgres --pwfile="$volume/initdb-password" \
        --auth-local=trust --auth-host=scram-sha-256 \
        --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    rm -f "$volume/initdb-password"
    mv "$PGDATA.new" "$PGDATA"
    remember
elif [ "$(cat "$known" 2>/dev/null)" != "$PERCORE_DB_PASSWORD" ]; then
    # A volume outlives the run whose password it was made with.
    echo "percore-postgres: setting the password" >&2
    quoted=$(printf '%s' "$PERCORE_DB_PASSWORD" | sed "s/'/''/g")
    printf "ALTER ROLE postgres PASSWORD '%s'\n" "$quoted" |
        postgres --single -D "$PGDATA" postgres >/dev/null
    remember
fi

unset PERCORE_DB_PASSWORD
exec postgres -D "$PGDATA" --config-file=/etc/percore/postgresql.conf "$@"
