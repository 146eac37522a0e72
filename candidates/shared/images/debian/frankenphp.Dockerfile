# Stand-in for the official FrankenPHP image: its Go library behind a small
# server of percore's own, linked to the thread-safe PHP's embed library.
ARG GOLANG
ARG PHP
FROM ${PHP} AS php

FROM ${GOLANG} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libpq5 libssl3t64 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=php /usr/local/include/php /usr/local/include/php
COPY --from=php /usr/local/lib/libphp.so /usr/local/lib/libphp.so
COPY --from=php /usr/local/bin/php-config /usr/local/bin/php-config
RUN ldconfig
WORKDIR /src
COPY server/go.mod server/go.sum ./
COPY authorities.crt /tmp/authorities.crt
ENV CGO_ENABLED=1 CGO_LDFLAGS=-L/usr/local/lib GOFLAGS="-trimpath -tags=nowatcher,nomercure,nobrotli"
# The library first: a change of the server compiles no more than the server.
RUN cat /tmp/authorities.crt >>/etc/ssl/certs/ca-certificates.crt \
 && CGO_CFLAGS="-O2 $(php-config --includes)" go build net/http github.com/dunglas/frankenphp
COPY server ./
RUN mkdir -p /out/bin /out/share/percore \
 && CGO_CFLAGS="-O2 $(php-config --includes)" go build -ldflags '-s -w' -o /out/bin/frankenphp-server . \
 && go version -m /out/bin/frankenphp-server >/tmp/modules \
 && { sed -n 's|^\tdep\tgithub.com/dunglas/frankenphp\tv\([^\t]*\).*|frankenphp=\1|p' /tmp/modules; \
      echo "frankenphp-server=library behind net/http"; \
      echo "go=$(go env GOVERSION | sed 's/^go//')"; \
    } >/out/share/percore/versions \
 && grep -q '^frankenphp=' /out/share/percore/versions

FROM ${PHP}
COPY --from=build /out/ /usr/local/
# As in the official image.
ENV GODEBUG=cgocheck=0
RUN ldd /usr/local/bin/frankenphp-server && ! ldd /usr/local/bin/frankenphp-server | grep 'not found'
