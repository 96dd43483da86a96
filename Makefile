# The two commands of the README:
#   make run    install what is missing, build, and train two small networks on digits
#   make test   install what is missing, build, and run every test
BUILD ?= build
WERROR ?= OFF
JOBS ?= $(shell nproc)

.PHONY: run build test bench package sanitize check-gemm install-deps clean

run: build
	@scripts/demo $(BUILD)/translution $(BUILD)/demo

build: install-deps
	@cmake -S . -B $(BUILD) -G Ninja -DTRANSLUTION_WERROR=$(WERROR) > $(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }; rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS)

test: build
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

bench: build
	@$(BUILD)/benchmarks/bench_ops

# Debian packages of program and library, in build/packages
package: build
	@cd $(BUILD) && cpack && ls -1 packages/*.deb

# Tests of ops and kernels under sanitizers and valgrind
sanitize: install-deps
	@JOBS=$(JOBS) scripts/sanitize

# Tests of ops with each combination of the libraries that multiply matrices
check-gemm: install-deps
	@JOBS=$(JOBS) scripts/check-gemm-libraries $(BUILD)/gemm

install-deps:
	@scripts/install-deps

clean:
	rm -rf $(BUILD)
