# The official FrankenPHP image with the database driver, which it does not bring.
ARG FRANKENPHP
FROM ${FRANKENPHP}
RUN install-php-extensions pdo_pgsql \
 && mkdir -p /usr/local/share/percore \
 && { frankenphp version | sed -n 's/^FrankenPHP v\{0,1\}\([0-9.]*\).*/frankenphp=\1/p'; \
      frankenphp version | sed -n 's/.*Caddy v\{0,1\}\([0-9.]*\).*/caddy=\1/p'; \
    } >/usr/local/share/percore/versions \
 && grep -q '^frankenphp=' /usr/local/share/percore/versions
