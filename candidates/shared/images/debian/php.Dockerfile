# Stand-in for the official PHP images: PHP 8.2 from Debian's source package,
# unpatched, built like the official ones (paths, compiler flags, headers in
# place), but without the extensions and the just-in-time compiler that no
# candidate uses: with them it took about twice as long. VARIANT_FLAGS makes it
# the one with fpm or the thread-safe one with the embed library; every other
# line is the same.
ARG BASE
FROM ${BASE} AS source
# The source package belongs to the previous Debian release: the same mirror
# serves it.
RUN sed -n 's/^deb \(.*\) trixie/deb-src \1 bookworm/p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list \
 && test -s /etc/apt/sources.list.d/source.list
ARG PHP_SOURCE
WORKDIR /src
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends xz-utils \
 && served=$(apt-cache madison php8.2 | sed -n 's/^ *php8.2 *| *\([^ ]*\) *|.*Sources$/\1/p') \
 && for version in "${PHP_SOURCE}" ${served}; do \
      apt-get source --download-only "php8.2=${version}" && break; \
      echo "php8.2 ${version} is not served: trying the next version" >&2; \
    done \
 && { ls php8.2_*.orig.tar.xz >/dev/null || { echo "no version of the source package php8.2 could be fetched: ${PHP_SOURCE}" ${served} >&2; exit 1; }; } \
 && echo "building PHP from the source package php8.2 ${version}" \
 && echo "${version}" >version \
 && mkdir php && tar -xf php8.2_*.orig.tar.xz -C php --strip-components=1 \
 && rm -rf /var/lib/apt/lists/* php8.2_*

FROM ${BASE} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev libpq-dev libssl-dev make pkg-config \
 && rm -rf /var/lib/apt/lists/*
COPY --from=source /src /src
WORKDIR /src/php
ARG VARIANT_FLAGS
RUN CFLAGS='-O2 -fstack-protector-strong -fpic -fpie -D_LARGEFILE_SOURCE -D_FILE_OFFSET_BITS=64' \
    LDFLAGS='-Wl,-O1 -pie' \
    ./configure --prefix=/usr/local \
      --with-config-file-path=/usr/local/etc/php \
      --with-config-file-scan-dir=/usr/local/etc/php/conf.d \
      --disable-all --disable-cgi --disable-phpdbg \
      --enable-opcache --disable-opcache-jit --with-openssl --enable-pdo --with-pdo-pgsql \
      --enable-ctype --enable-filter \
      ${VARIANT_FLAGS}
RUN make -j"$(nproc)" >/tmp/make.log 2>&1 || { tail -n 30 /tmp/make.log >&2; exit 1; }
RUN make install INSTALL_ROOT=/out >/dev/null \
 && find /out -type f \( -name '*.so' -o -path '*/bin/php' -o -path '*/sbin/*' \) -exec strip --strip-unneeded {} + \
 && rm -rf /out/usr/local/php /out/usr/local/lib/php/test /out/usr/local/lib/php/doc \
 && find /out -name '*.a' -delete \
 && mkdir -p /out/usr/local/etc/php/conf.d /out/usr/local/etc/php-fpm.d \
 && echo 'zend_extension=opcache' >/out/usr/local/etc/php/conf.d/docker-php-ext-opcache.ini \
 && install -D /src/version /out/usr/local/share/percore/php-source

FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libpq5 libssl3t64 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
RUN ldconfig && php -v && php -m
WORKDIR /var/www/html
