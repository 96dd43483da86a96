# The two commands of the README:
#   make run    install what is missing, build, and train two small networks on digits
#   make test   install what is missing, build, and run every test
# And for those who change it:
#   make fuzz     every parser of files under clang's sanitizers, 10 s each
#   make stress   the long studies: kills, damaged files, fuzzing, input; half an hour or more
BUILD ?= build
WERROR ?= OFF
JOBS ?= $(shell nproc)

.PHONY: run build test bench fuzz stress package sanitize check-gemm install-deps clang clean

run: build
	@scripts/demo $(BUILD)/translution $(BUILD)/demo

build: install-deps
	@cmake -S . -B $(BUILD) -G Ninja -DTRANSLUTION_WERROR=$(WERROR) > $(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }; rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS)

test: build clang
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

fuzz: clang
	@scripts/fuzz $(BUILD)/fuzz 10

stress: build clang
	@scripts/stress $(BUILD)

bench: build
	@$(BUILD)/benchmarks/bench_ops

# Debian packages of program and library, in build/packages
package: build
	@cd $(BUILD) && cpack && ls -1 packages/*.deb

# Tests of kernels, ops, layers, data and training under sanitizers and valgrind
sanitize: install-deps
	@JOBS=$(JOBS) scripts/sanitize

# Tests of ops with each combination of the libraries that multiply matrices
check-gemm: install-deps
	@JOBS=$(JOBS) scripts/check-gemm-libraries $(BUILD)/gemm

install-deps:
	@scripts/install-deps

clang: # only what fuzz/ is built with
	@scripts/install-deps clang-14 libclang-rt-14-dev

clean:
	rm -rf $(BUILD)
