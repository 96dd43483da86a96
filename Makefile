# The two commands of the README:
#   make run    install what is missing, compile the program, and train two small networks on digits
#   make test   install what is missing, compile everything, and run every test
# For developers:
#   make build        everything that make test compiles
#   make build-time   how long compiling takes from nothing, and after one change
#   make fuzz         every parser of files under clang's sanitizers, 10 s each
#   make stress       the long studies: kills, damaged files, fuzzing, input; half an hour or more
BUILD ?= build
WERROR ?= OFF
JOBS ?= $(shell nproc)
configure = scripts/configure $(BUILD) -DTRANSLUTION_WERROR=$(WERROR)
compile = JOBS=$(JOBS) scripts/compile $(BUILD)

.PHONY: run program build test bench build-time fuzz stress package sanitize check-gemm clang clean

run: program
	@scripts/demo $(BUILD)/translution $(BUILD)/demo

# A build directory that has the tests already keeps them.
program:
	@scripts/install-deps program
	@[ -f $(BUILD)/build.ninja ] || $(configure) -DTRANSLUTION_TESTS=OFF -DTRANSLUTION_BENCHMARKS=OFF
	@$(compile) translution_cli

build:
	@scripts/install-deps all
	@$(configure) -DTRANSLUTION_TESTS=ON -DTRANSLUTION_BENCHMARKS=ON
	@$(compile) all

# Tests share the cores: threads that wait must not spin.
test: build clang
	@echo "Compiling the fuzzers."
	@scripts/fuzz $(BUILD)/fuzz 0
	@cd $(BUILD) && OMP_WAIT_POLICY=passive ctest --output-on-failure -j $(JOBS)

build-time: clang
	@scripts/install-deps all
	@JOBS=$(JOBS) scripts/build-time

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
sanitize:
	@scripts/install-deps all
	@JOBS=$(JOBS) scripts/sanitize

# Tests of ops with each combination of the libraries that multiply matrices
check-gemm:
	@scripts/install-deps all
	@JOBS=$(JOBS) scripts/check-gemm-libraries $(BUILD)/gemm

clang: # only what fuzz/ is built with
	@scripts/install-deps clang

clean:
	rm -rf $(BUILD)
