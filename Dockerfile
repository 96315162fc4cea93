# docker run --rm -v /some/directory:/data IMAGE survey /data
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM scratch
COPY --from=build /src/bin/claimbench /claimbench
ENTRYPOINT ["/claimbench"]
CMD ["survey", "--out", "-", "/data"]
