# Two commands do everything:  make demo  (measure real gateways of this machine)   make test  (all checks and tests)
# Each sets up what it needs; running it again is quick.

BUILD  := build/release
PYTHON := .venv/bin/python
SHELL  := /bin/bash

.PHONY: demo test endure quick setup build check format docs gallery wheel deb bench fuzz clean help

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

demo: build ## measure stateful NAT64 and NAT44, routers and SIIT of this very machine
	.venv/bin/gatemark demo

test: build ## format, lint, types, unit, property, golden, contract and system tests
	scripts/check

endure: build ## the long versions of tests, as root: kills, faults of disk and engine, fuzz; hours
	.venv/bin/pytest -q -m endure --endure tests

quick: build ## format, lint, types and unit tests of what changed against HEAD, below a minute
	@scripts/quick

build: setup ## engine and Python environment
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release > /dev/null
	@cmake --build --preset release -- $(if $(CI),,--quiet)

setup: ## Debian packages and Python packages, if any is missing
	@scripts/setup

check: ## the checks alone, on what is built
	scripts/check

format: setup ## rewrite C++ and Python in the project's form
	scripts/sources cpp | xargs -r clang-format -i
	.venv/bin/ruff format src tests bench site gallery && .venv/bin/ruff check --fix src tests bench site gallery

docs: setup ## build/site/html: every document, the library and the examples as a site with search
	@.venv/bin/python site/gather.py build/site/pages
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet --config-file site/mkdocs.yml
	@echo "build/site/html/index.html; with search: python3 -m http.server --directory build/site/html"

gallery: build ## measure every recipe of this machine for gallery/, as root; ARGS="NAME ..." some of them, ARGS=--page none
	@.venv/bin/python gallery/make.py $(ARGS)

wheel: setup ## dist/gatemark-*.whl with the engine inside, for machines without compiler and DPDK
	@scripts/wheel

deb: setup ## dist/gatemark_*.deb: the wheel with its Python environment, for the release of Debian that it is made on
	@scripts/deb

bench: build ## cycles per frame beside DPDK's own testpmd, pacing; with ARGS="--quick" below two minutes
	@.venv/bin/python -m bench.run $(ARGS)

fuzz: setup ## fuzzers on everything that is read from the wire, for an hour; make fuzz TIME=600: for 600 seconds
	@cmake --preset asan > /dev/null && cmake --build --preset fuzz -- --quiet
	@scripts/fuzz --seconds $(or $(TIME),3600)

clean: ## remove what was built; results stay
	rm -rf build .venv
