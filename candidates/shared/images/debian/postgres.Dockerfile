# Stand-in for postgres:VERSION-trixie: Debian's PostgreSQL with the user, the
# paths and the data directory of the official image. Its entrypoint is not
# imitated: percore's own image brings one.
ARG BASE
FROM ${BASE}
RUN groupadd --system --gid 999 postgres \
 && useradd --system --gid postgres --uid 999 --home-dir /var/lib/postgresql --shell /bin/bash postgres \
 && install -d -o postgres -g postgres /var/lib/postgresql \
 && mkdir -p /etc/postgresql-common \
 && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-17 \
 && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 3777 /var/run/postgresql \
 && postgres --version
VOLUME /var/lib/postgresql/data
EXPOSE 5432
