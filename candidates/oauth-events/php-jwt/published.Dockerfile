# The study's token library, as an overlay for the root of a PHP image.
ARG COMPOSER
ARG BASE
FROM ${COMPOSER} AS packages
WORKDIR /build
COPY composer.json ./
COPY authorities.crt /tmp/authorities.crt
ARG JWT_VERSION
RUN cat /tmp/authorities.crt >>/etc/ssl/certs/ca-certificates.crt \
 && mkdir -p /overlay/app /overlay/usr/local/share/percore \
 && COMPOSER_VENDOR_DIR=/overlay/app/jwt composer install --no-dev --no-interaction --no-progress --prefer-dist --ignore-platform-reqs \
 && COMPOSER_VENDOR_DIR=/overlay/app/jwt composer show firebase/php-jwt "${JWT_VERSION}" \
 && echo "firebase/php-jwt ${JWT_VERSION}" >/overlay/usr/local/share/percore/jwt-library

FROM ${BASE}
COPY --from=packages /overlay /overlay
RUN cat /overlay/usr/local/share/percore/jwt-library && test -f /overlay/app/jwt/firebase/php-jwt/src/JWT.php
