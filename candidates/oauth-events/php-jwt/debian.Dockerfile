# The token library that Debian ships, as an overlay for the root of a PHP image.
ARG BASE
FROM ${BASE} AS packages
WORKDIR /packages
RUN apt-get update \
 && apt-get download php-lcobucci-jwt php-psr-clock \
 && for p in *.deb; do dpkg-deb --extract "$p" root; done \
 && mkdir -p /overlay/usr/share /overlay/usr/local/share/percore \
 && cp -a root/usr/share/php /overlay/usr/share/php \
 && echo "lcobucci/jwt $(dpkg-deb --field php-lcobucci-jwt_*.deb Version | sed 's/-[^-]*$//')" >/overlay/usr/local/share/percore/jwt-library \
 && rm -rf /var/lib/apt/lists/*

FROM ${BASE}
COPY --from=packages /overlay /overlay
RUN cat /overlay/usr/local/share/percore/jwt-library && test -f /overlay/usr/share/php/Lcobucci/JWT/Token/Parser.php
