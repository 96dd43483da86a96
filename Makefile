# The two commands of the README:
#   make run    install what is missing, compile the program, and train two small networks on digits
#   make test   install what is missing, compile everything, and run every test
# For developers:
#   make build        everything that make test compiles
#   make build-time   how long compiling takes from nothing, and after one change
#   make fuzz         every parser of files under clang's sanitizers, 10 s each
#   make stress       the long studies: kills, lost hosts, damaged files, fuzzing, the page, input; half an hour or more
#   make check-torch VERSION=pypi    all of it against another LibTorch (scripts/check-torch)
#   make check-wheel  the package that pip builds, in a virtual environment of its own
# make TORCH=python …: LibTorch from the torch package of the active environment; builds in build/python
TORCH ?=
BUILD ?= $(if $(filter python,$(TORCH)),build/python,build)
WERROR ?= OFF
JOBS ?= $(shell nproc)
VERSION ?= pypi
configure = scripts/configure $(BUILD) -DTRANSLUTION_WERROR=$(WERROR) $(if $(TORCH),-DTRANSLUTION_TORCH=$(TORCH))
export TORCH
compile = JOBS=$(JOBS) scripts/compile $(BUILD)

.PHONY: run program build test bench build-time fuzz stress package sanitize check-gemm check-torch check-wheel clang clean

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

# Everything against another LibTorch: VERSION=pypi|torch==X.Y.Z|debian12|debian13|sid
check-torch:
	@JOBS=$(JOBS) scripts/check-torch $(VERSION) $(BUILD)/torch-$(subst =,,$(VERSION))

check-wheel:
	@scripts/check-wheel $(BUILD)/check-wheel

clang: # only what fuzz/ is built with
	@scripts/install-deps clang

clean:
	rm -rf $(BUILD)
