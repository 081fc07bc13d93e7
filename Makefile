# SPDX-License-Identifier: BSD-3-Clause
#
# A thin front for Meson: each target does its own set-up on a fresh machine.

BUILD ?= build
MESON_ARGS ?=
DEMO_ARGS ?= loopback --config config/loopback-ring.yaml --seconds 3
BENCH_ARGS ?= --quick --save $(BUILD)/bench.json

# Where NVIDIA's installer leaves nvcc.
export PATH := $(PATH):/usr/local/cuda/bin

.DEFAULT_GOAL := all
.PHONY: all demo python check ci check-long check-sanitized check-arm64 coverage bench install sbom clean help

all: ## build program and libraries
	@scripts/setup.sh build
	@scripts/build.sh $(BUILD) product $(MESON_ARGS)

demo: ## build the program, and play frames through a software port into memory: no NIC, no GPU needed
	@scripts/setup.sh build
	@scripts/build.sh --distribution-dpdk $(BUILD) app/gdrcap $(MESON_ARGS)
	$(BUILD)/app/gdrcap $(DEMO_ARGS)
	@echo
	@echo "Next: $(BUILD)/app/gdrcap doctor   is this machine able to capture into GPU memory?"
	@echo "      $(BUILD)/app/gdrcap --help   all commands; make install puts it into the PATH"

python: all ## a wheel and an sdist of the Python package, in BUILD/dist
	@scripts/python-dist.sh $(BUILD)

check: ## build, and run the tests that each change has to pass
	@scripts/setup.sh check
	@scripts/check.sh $(BUILD) check $(MESON_ARGS)

ci: ## the same, and with sanitizers and linters what meets hostile input
	@scripts/setup.sh ci
	@scripts/check.sh $(BUILD) ci $(MESON_ARGS)

check-long: ## all tests there are: both compilers whole, mutants, arm64, packages, every GPU architecture; hours
	@scripts/setup.sh check-long
	@scripts/check.sh $(BUILD) long $(MESON_ARGS)

check-sanitized: ## all tests with clang, its address and undefined-behaviour sanitizers, and the fuzz targets
	@scripts/setup.sh check-sanitized
	@scripts/check.sh $(BUILD) sanitized $(MESON_ARGS)

check-arm64: ## cross-build for arm64, and run unit tests, loopback and doctor of it under qemu-user
	@scripts/setup.sh check-arm64
	@scripts/check.sh $(BUILD) arm64 $(MESON_ARGS)

coverage: ## which lines and branches the tests run, by folder; by file in BUILD-coverage
	@scripts/setup.sh check
	@scripts/coverage.sh $(BUILD) $(MESON_ARGS)

bench: all ## how fast each stage and the whole are on this machine: 8 minutes at most
	$(BUILD)/app/gdrcap bench $(BENCH_ARGS)

install: all ## install program, library and headers; DESTDIR, MESON_ARGS=--prefix=... at first build
	meson install -C $(BUILD) --no-rebuild --skip-subprojects

sbom: all ## what is linked in and needed, BUILD/gdrcap.spdx.json
	scripts/sbom.py $(BUILD)/app/gdrcap >$(BUILD)/gdrcap.spdx.json

clean: ## remove what was built, not what was downloaded
	rm -rf $(BUILD) $(BUILD)-clang $(BUILD)-arm64 $(BUILD)-coverage

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /make \1\t/p' Makefile | expand -t 24
