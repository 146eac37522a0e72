# Stand-in for golang:VERSION-trixie, for machines that reach no image registry:
# Debian's Go fetches the pinned toolchain through the Go module proxy, and only
# that toolchain stays in the image, where the official image has it.
ARG BASE
FROM ${BASE} AS fetch
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends golang-go \
 && rm -rf /var/lib/apt/lists/*
# Certificate authorities that the driver's machine trusts beyond the usual ones
# (a company's proxy). Build stages alone see them.
COPY authorities.crt /tmp/authorities.crt
ARG GO_VERSION
RUN cat /tmp/authorities.crt >>/etc/ssl/certs/ca-certificates.crt \
 && GOTOOLCHAIN=go${GO_VERSION} go version \
 && cp -a "$(GOTOOLCHAIN=go${GO_VERSION} go env GOROOT)" /usr/local/go \
 && chmod -R u+w /usr/local/go

FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ gcc git libc6-dev make pkg-config \
 && rm -rf /var/lib/apt/lists/*
COPY --from=fetch /usr/local/go /usr/local/go
ENV GOTOOLCHAIN=local GOPATH=/go PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /go
RUN go version
