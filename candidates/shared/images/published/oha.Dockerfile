# The load generator, compiled by the official Rust image.
ARG RUST
ARG BASE
FROM ${RUST} AS build
COPY authorities.crt /tmp/authorities.crt
ARG OHA_VERSION
RUN cat /tmp/authorities.crt >>/etc/ssl/certs/ca-certificates.crt \
 && cargo install oha --version "${OHA_VERSION}" --locked --root /out

FROM ${BASE}
COPY --from=build /out/bin/oha /usr/local/bin/oha
RUN oha --version
