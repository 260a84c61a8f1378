# firstbyte: build targets. `make help` lists them.

SHELL := /bin/bash
CARGO ?= cargo
BINARY := target/release/firstbyte

# How much of the long checks `make test` takes, and `make test-all`.
SIM_SEEDS ?= 200
SIM_SEEDS_ALL ?= 100000
FUZZ_RUNS ?= 20000
FUZZ_RUNS_ALL ?= 2000000
LINK_ROUNDS_ALL ?= 10

# Compilers at a time in `make compiled`. A command behind "+" shares the jobs of its make; "+" would run it by `make -n`, too.
COMPILERS ?= $(shell echo $$(($$(nproc) + 1)))
JOBS := $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,+)

# As root the worker must be somebody who may read this folder: its owner.
ifeq ($(shell id -u),0)
SERVE_AS := -g 'user $(shell stat -c "%U %G" .);'
endif

.PHONY: help build compiled unit-tests serve test checks test-all long-checks setup lint deny black-box fuzz-slice bench readme-figures lab-figures oracle h2spec hpack testssl soak first-byte deb deb-test fmt clean

help:
	@echo 'make serve     build, and serve examples/site on http://127.0.0.1:8080/'
	@echo 'make test      all checks of a change: format, lints, licences, unit and black-box tests, short fuzzing'
	@echo 'make test-all  make test, then long simulation and fuzzing, a soak, the outside suite'
	@echo 'make first-byte  first and last bytes and handshakes over an emulated link, with the figures (docs/link.md)'
	@echo 'make bench     instruction counts of the hot paths'
	@echo 'make readme-figures  figures and pictures of README.md, measured beside nginx and h2o where they are installed'
	@echo 'make lab-figures  figures and pictures of docs/lab.md, of the servers that are installed'
	@echo 'make build     the release binary, $(BINARY)'
	@echo 'make deb       Debian packages: beside nginx, and in its place (docs/operations.md)'
	@echo 'make fmt       format the source'
	@echo 'make clean     remove what was built'

build:
	$(JOBS)@$(CARGO) build --release --package firstbyte

# Unit tests and fuzzing beside the compiler of the release binary: the last step of this compiler uses one processor for minutes.
compiled:
	@$(MAKE) --no-print-directory -j$(COMPILERS) build unit-tests fuzz-slice

unit-tests:
	$(JOBS)@$(CARGO) test --quiet --workspace --no-run
	$(JOBS)@$(CARGO) test --workspace --lib --bins

# A certificate that nobody vouches for, made once; without the openssl command there is no HTTPS.
examples/site/run/tls.conf:
	@mkdir -p $(@D)
	@if command -v openssl >/dev/null; then \
	    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
	        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout $(@D)/localhost.key -out $(@D)/localhost.pem 2>/dev/null && \
	    printf 'listen 127.0.0.1:8443 ssl spdy;\nssl_certificate run/localhost.pem;\nssl_certificate_key run/localhost.key;\n' >$@; \
	else \
	    echo 'no HTTPS: the openssl command, which makes the certificate, is not there'; \
	fi

serve: build examples/site/run/tls.conf
	@mkdir -p examples/site/run
	@echo 'firstbyte serves examples/site on'
	@echo '  http://127.0.0.1:8080/          the site, over HTTP/1.1 and HTTP/2 with prior knowledge'
	@[ ! -f examples/site/run/tls.conf ] || echo '  https://localhost:8443/         the same over TLS, by HTTP/2, SPDY/3.1 or HTTP/1.1 (self-signed certificate)'
	@echo '  http://127.0.0.1:8080/missing   its own page for what is not there'
	@echo '  http://127.0.0.1:8080/status    what the server knows of your request'
	@echo 'Ctrl-C ends it; kill -HUP takes a changed examples/site/nginx.conf.'
	@exec $(BINARY) -p examples/site/ -c nginx.conf -e stderr $(SERVE_AS)

setup:
	@.ci/setup

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Licences, bans, sources and advisories of the libraries, by deny.toml.
deny:
	@.ci/deny

# Simulation, tests of programs against the release binary, as it is installed, and the examples in documentation.
black-box: build
	FIRSTBYTE_BIN=$(abspath $(BINARY)) SIM_SEEDS=$(SIM_SEEDS) $(CARGO) test --workspace --test '*'
	$(CARGO) test --workspace --doc

fuzz-slice:
	$(JOBS)@FUZZ_RUNS=$(FUZZ_RUNS) .ci/fuzz

# The packages of the release binary, installed, run and removed on a copy of this machine.
deb-test: build
	@if command -v dpkg-deb >/dev/null; then \
	    packaging/deb/build $(BINARY) target/deb/trial >/dev/null && packaging/deb/test target/deb/trial; \
	else \
	    echo 'skipped: deb-test: dpkg-deb is not installed'; \
	fi

# Repeats the reports of skipped tests at the end, with their number.
test:
	@.ci/report-skipped $(MAKE) --no-print-directory checks
	@echo 'make test: all is well'

checks: setup lint deny compiled black-box deb-test

soak: build
	FIRSTBYTE_BIN=$(abspath $(BINARY)) SECONDS_LONG=$(or $(SOAK_SECONDS),120) .ci/soak

# First and last bytes, and handshakes, over the emulated link, many times, with the figures (docs/link.md); and the
# link itself: rates and losses over a minute, a gigabit a second without a rate.
first-byte: build
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LINK_ROUNDS=$(LINK_ROUNDS_ALL) LINK_TABLE=1 LINK_STRICT=1 \
	    $(CARGO) test --package firstbyte-link --test first_byte --test handshakes --test rtt_map -- --nocapture
	LINK_SECONDS=60 LINK_TABLE=1 LINK_STRICT=1 $(CARGO) test --package firstbyte-link --test shape -- --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LINK_SECONDS=60 $(CARGO) test --package firstbyte-tests --test via -- --nocapture

# The outside suite: https://github.com/nginx/nginx-tests, checked out at NGINX_TESTS.
oracle: build
	@if [ -n '$(NGINX_TESTS)' ]; then \
	    FIRSTBYTE_BIN=$(abspath $(BINARY)) tests/oracle/run.sh '$(NGINX_TESTS)'; \
	else \
	    echo 'skipped: oracle: NGINX_TESTS does not name a checkout of nginx-tests'; \
	fi

# h2spec is the program H2SPEC, else the one in PATH.
h2spec: build
	@FIRSTBYTE_BIN=$(abspath $(BINARY)) tests/oracle/h2spec.sh

# testssl.sh has to be installed; it takes two minutes.
testssl: build
	@FIRSTBYTE_BIN=$(abspath $(BINARY)) tests/oracle/testssl.sh

# Public header blocks: https://github.com/http2jp/hpack-test-case, checked out at HPACK_STORIES.
hpack:
	@if [ -n '$(HPACK_STORIES)' ]; then \
	    CARGO='$(CARGO)' tests/oracle/hpack.sh '$(HPACK_STORIES)'; \
	else \
	    echo 'skipped: hpack: HPACK_STORIES does not name a checkout of hpack-test-case'; \
	fi

test-all: test
	@.ci/report-skipped $(MAKE) --no-print-directory long-checks

long-checks:
	@.ci/setup all
	FIRSTBYTE_BIN=$(abspath $(BINARY)) PROXY_CLIENTS=1000 FLUSH_LATE_MS=5 $(CARGO) test --package firstbyte-tests \
	    --test proxy_slow_readers --test proxy_early_flush --test gateway_first_byte -- --test-threads=1 --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) PROXY_RACES=100000 $(CARGO) test --package firstbyte-tests --test proxy retries:: -- --test-threads=1 --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) $(CARGO) test --package firstbyte-tests --test proxy sticky_compared:: -- --test-threads=1 --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) WORDPRESS=1 $(CARGO) test --package firstbyte-tests --test gateway wordpress::
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LAB_LONG=1 $(CARGO) test --package firstbyte-tests --test bench_judged --test bench_coverage --test waterfall_stalls -- --test-threads=1 --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LAB_LONG=1 $(CARGO) test --package firstbyte-tests --test reload_storm -- --nocapture
	LAB_LONG=1 $(CARGO) test --release --package firstbyte-store --test clickhouse -- --test-threads=1
	LAB_LONG=1 $(CARGO) test --package firstbyte-lab --test fleet_chdb
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LAB_LONG=1 $(CARGO) test --package firstbyte-tests --test lab experiment_end_to_end:: -- --test-threads=1 --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) LAB_LONG=1 $(CARGO) test --package firstbyte-link --test experiment -- --nocapture
	FIRSTBYTE_BIN=$(abspath $(BINARY)) SIM_SEEDS=$(SIM_SEEDS_ALL) $(CARGO) test --release --package firstbyte-driver
	@$(MAKE) --no-print-directory first-byte
	@$(MAKE) --no-print-directory fuzz-slice FUZZ_RUNS=$(FUZZ_RUNS_ALL)
	@$(MAKE) --no-print-directory soak
	@if command -v dpkg-deb >/dev/null; then $(MAKE) --no-print-directory deb && packaging/deb/test; fi
	@$(MAKE) --no-print-directory h2spec
	@$(MAKE) --no-print-directory hpack
	@$(MAKE) --no-print-directory testssl
	@$(MAKE) --no-print-directory oracle

deb:
	@CARGO='$(CARGO)' packaging/deb/build

bench:
	@if [ -x benches/run ]; then benches/run; else echo 'bench: no benches/run in this tree yet'; exit 1; fi

# It wants quiet CPUs; NGINX and H2O say which ones, if not those of PATH.
readme-figures: build
	@benches/readme $(BINARY) $(if $(NGINX),--nginx $(NGINX)) $(if $(H2O),--h2o $(H2O))
	@benches/lab $(BINARY) --only pages

# The figures and pictures of docs/lab.md.
lab-figures: build
	@benches/lab $(BINARY)

fmt:
	$(CARGO) fmt --all

clean:
	$(CARGO) clean
	rm -rf fuzz/target examples/site/run/* examples/php/run/*
