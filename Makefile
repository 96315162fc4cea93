# Each target is a command that a person would type.

export CGO_ENABLED = 0

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GO_FILES := $(shell git ls-files '*.go' 2>/dev/null)

.PHONY: build survey test check race fleet-test docs requirements requirements-full calibrate bench workloads soak lab lab-quick lab-leftovers clean

build: ## bin/claimbench, one static binary
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/claimbench ./cmd/claimbench

survey: build ## survey the filesystems of this machine
	./bin/claimbench survey

test: ## all tests; those that need root or a tool say why they skip
	go test -timeout 25m ./...

check: ## what a commit must pass beside the tests
	@test -z "$$(gofmt -l $(GO_FILES))" || { gofmt -l $(GO_FILES); echo 'run gofmt on these'; exit 1; }
	go vet ./...
	GOARCH=arm64 go vet ./...
	go tool staticcheck ./...
	go mod tidy -diff
	$(MAKE) --no-print-directory race

race: ## the packages with goroutines, under the race detector; it needs a C compiler
	@if command -v $$(go env CC) >/dev/null; then \
		CGO_ENABLED=1 go test -race -short ./internal/race ./internal/survey ./probes; \
	else \
		echo 'race detector: skipped, no C compiler ($$(go env CC))'; \
	fi

fleet-test: build ## several hosts: serve and joins over loopback, as processes and at the command line, and two kernels over NFS
	go test ./internal/fleet
	go test -run TestScript/fleet ./cmd/claimbench
	./bin/claimbench lab run --config configs/fleet-test.yaml kernels2-nfs42

requirements: ## docs/requirements.md and the Go table beside the explorer, with two contenders
	go run ./cmd/claimbench explore --requirements docs/requirements.md

requirements-full: ## the same table with three contenders, printed
	go run ./cmd/claimbench explore --contenders 3 --preemptions 1

calibrate: build ## what the probes find, on the planted faults and on good filesystems: docs/calibration.md; half an hour
	./bin/claimbench calibrate --format json --output docs/calibration.json
	go test ./internal/calibrate -run ThePage -rewrite

docs: ## write the pages of the probes again
	mkdir -p docs/probes
	go run ./cmd/claimbench docs docs/probes

bench: ## the figures of the starting line, the probes and several hosts, on this machine
	go test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 60m ./bench ./internal/fleet

workloads: build ## the workloads that are about speed and size, in /tmp and /dev/shm
	./bin/claimbench bench scale,peers --budget 60m /tmp /dev/shm

soak: build ## many surveys of good filesystems: no false alarm may come out
	go test -run '^TestNoFalseAlarm$$' -timeout 120m -v ./bench -soak

lab: build ## make every filesystem that can be made here and survey it; two hours on two CPUs, needs root
	./bin/claimbench lab run

lab-quick: build ## the same for a selection, one after the other, in ten minutes: two guests side by side see too little on two CPUs
	./bin/claimbench lab run --quick --jobs 1

lab-leftovers: build ## 50 runs of the lab, ten of them interrupted or killed: nothing may be left behind; some minutes, root
	go test -run '^(TestWhatIsLeftBehindIsFound|TestRunsLeaveNothingBehind)$$' -timeout 60m -v ./internal/lab -leftovers 50

clean:
	rm -rf bin
