# Two images. The last stage is the default: the program alone, and not as root.
#
#   docker build -t claimbench .
#   docker run --rm --user "$(id -u):$(id -g)" -v /some/directory:/data claimbench survey --out - /data
#
# The stage nfs is for compose.yaml: Debian with what mounts and serves NFS.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN make build VERSION="$VERSION" && mkdir /image && mkdir -m 0777 /image/data

FROM debian:bookworm-slim AS nfs
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nfs-common nfs-kernel-server rpcbind \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/bin/claimbench /usr/local/bin/claimbench
COPY configs/network.yaml /network.yaml
COPY configs/container.sh /usr/local/bin/claimbench-container
ENTRYPOINT ["/usr/local/bin/claimbench-container"]

FROM scratch
COPY --from=build /src/bin/claimbench /usr/local/bin/claimbench
COPY configs/network.yaml /network.yaml
COPY --from=build /image /
USER 65532:65532
ENV PATH=/usr/local/bin
ENTRYPOINT ["/usr/local/bin/claimbench"]
CMD ["survey", "--out", "-", "/data"]
