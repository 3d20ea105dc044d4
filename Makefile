# Two commands do everything:  make demo  (measure real gateways of this machine)   make test  (all checks and tests)
# Each sets up what it needs; running it again is quick.

SHELL  := /bin/bash

.PHONY: demo test endure quick build setup check format docs gallery wheel deb bench fuzz clean help

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

demo: build ## measure stateful NAT64 and NAT44, routers and SIIT of this very machine
	.venv/bin/gatemark demo

test: ## format, lint, types, unit, property, golden, contract and system tests; a quarter of an hour on two CPUs once built
	@scripts/setup test
	scripts/check

endure: ## what takes long, for every night: another CPU, thread sanitizer, kernels, kills, faults of disk and engine, fuzz; hours
	@scripts/setup endure
	scripts/endure $(ARGS)

quick: ## format, lint, types and unit tests of what changed against HEAD, below a minute
	@scripts/setup test
	@scripts/quick

build: setup ## the programs and their Python environment
	@scripts/build release

setup: ## Debian packages and Python packages that the programs need, if any is missing
	@scripts/setup demo

format: ## rewrite C++ and Python in the project's form
	@scripts/setup test
	scripts/sources cpp | xargs -r .venv/bin/clang-format -i
	scripts/sources python | xargs .venv/bin/ruff format
	scripts/sources python | xargs .venv/bin/ruff check --fix

docs: ## build/site/html: every document, the library and the examples as a site with search
	@scripts/setup docs
	@.venv/bin/python site/gather.py build/site/pages
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet --config-file site/mkdocs.yml
	@echo "build/site/html/index.html; with search: python3 -m http.server --directory build/site/html"

gallery: build ## measure every recipe of this machine for gallery/, as root; ARGS="NAME ..." some of them, ARGS=--page none
	@.venv/bin/python gallery/make.py $(ARGS)

wheel: ## dist/gatemark-*.whl with the engine inside, for machines without compiler and DPDK
	@scripts/setup wheel
	@scripts/wheel

deb: ## dist/gatemark_*.deb: the wheel with its Python environment, for the release of Debian that it is made on
	@scripts/setup wheel
	@scripts/deb

bench: ## cycles per frame beside DPDK's own testpmd, pacing; with ARGS="--quick" below two minutes
	@scripts/setup bench
	@cmake --preset release -D GATEMARK_BENCH=ON > /dev/null && cmake --build build/release -- --quiet
	@.venv/bin/python -m bench.run $(ARGS)

fuzz: ## fuzzers on everything that is read from the wire, for an hour; make fuzz TIME=600: for 600 seconds
	@scripts/setup test
	@cmake --preset asan > /dev/null && cmake --build --preset fuzz -- --quiet
	@scripts/fuzz --seconds $(or $(TIME),3600)

clean: ## remove what was built; results stay
	rm -rf build .venv
