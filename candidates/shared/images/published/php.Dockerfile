# The official PHP image with the database driver, which it does not bring.
ARG PHP
FROM ${PHP}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libpq-dev \
 && docker-php-ext-install -j"$(nproc)" pdo_pgsql \
 && rm -rf /var/lib/apt/lists/* \
 && php -m
