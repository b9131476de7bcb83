# The same tests elsewhere: another processor under emulation, other compilers and options.
#
#   make test-aarch64    cross-compiled (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross), run by
#   make test-riscv64    qemu-user; likewise (gcc-riscv64-linux-gnu, libc6-dev-riscv64-cross). With
#                        TEST_RUNNER set, tests/run leaves out what says `not-with: emulation`:
#                        there the processes, signals and memory that the test looks at are the
#                        emulator's
#   make test-matrix     compilers, standards, optimisation, ways of linking, musl: tests/matrix
#
# What the machine has no tools for is installed where make runs as root with apt, and left out with
# a word otherwise.

.PHONY: test-aarch64 test-riscv64 test-port test-matrix print-out
PORT_BIN = $(filter $(addprefix $(OUT)/tests/,unit/% api/% prog/% threads/%),$(TEST_BIN))

test-aarch64 test-riscv64: TRIPLE = $(@:test-%=%)-linux-gnu
test-aarch64 test-riscv64: NEEDS = gcc-$(TRIPLE) qemu-user \
    libc6-dev-$(if $(filter aarch64%,$(TRIPLE)),arm64,riscv64)-cross
test-aarch64 test-riscv64:
	$(Q)able() { command -v qemu-$(@:test-%=%) >/dev/null && \
	        echo 'int main(void){return 0;}' | \
	        $(TRIPLE)-gcc -x c - -o /dev/null 2>/dev/null; }; \
	able || tests/need $(NEEDS); \
	if ! able; then echo 'skipped: $@ needs $(NEEDS)'; exit 0; fi; \
	$(MAKE) --no-print-directory CC=$(TRIPLE)-gcc AR=$(TRIPLE)-ar OBJCOPY=$(TRIPLE)-objcopy \
	    TEST_RUNNER='qemu-$(@:test-%=%) -L /usr/$(TRIPLE)' test-port

# Emulation is slow: one number of Ps above one, and time enough. Without the tests of the hook:
# qemu 7.2 has no preadv2.
test-port:
	$(Q)$(MAKE) --no-print-directory -k $(PARALLEL) lib hook $(PORT_BIN) || true
	$(Q)$(RUN_ENV) TEST_RUNNER='$(TEST_RUNNER)' WRAP='$(TEST_RUNNER)' \
	    KINDS='unit api prog threads' PROCS='1 4' LIMIT=600 tests/run

test-matrix:
	$(Q)MAKE='$(MAKE)' BUILD='$(BUILD)' JOBS='$(JOBS)' tests/matrix
print-out:
	@echo '$(OUT)'
