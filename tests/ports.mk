# The same tests elsewhere: another processor under emulation, other compilers and options.
#
#   make test-aarch64    cross-compiled (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross), run by
#                        qemu-user; with TEST_RUNNER set, tests/run leaves out what says
#                        `not-with: emulation`: there the processes, signals and memory that the
#                        test looks at are the emulator's as well
#   make test-matrix     compilers, standards, optimisation, ways of linking, musl: tests/matrix
#
# What the machine has no tools for is left out with a word.

.PHONY: test-aarch64 test-port test-matrix print-out
PORT_BIN = $(filter $(OUT)/tests/unit/% $(OUT)/tests/api/% $(OUT)/tests/prog/%,$(TEST_BIN))

test-aarch64: TRIPLE := aarch64-linux-gnu
test-aarch64:
	$(Q)if ! command -v qemu-aarch64 >/dev/null || \
	    ! echo 'int main(void){return 0;}' | $(TRIPLE)-gcc -x c - -o /dev/null 2>/dev/null; then \
	    echo 'skipped: test-aarch64 needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user'; exit 0; fi; \
	$(MAKE) --no-print-directory CC=$(TRIPLE)-gcc AR=$(TRIPLE)-ar OBJCOPY=$(TRIPLE)-objcopy \
	    TEST_RUNNER='qemu-aarch64 -L /usr/$(TRIPLE)' test-port

# Emulation is slow: one number of Ps above one, and time enough.
test-port:
	$(Q)$(MAKE) --no-print-directory -k $(PARALLEL) lib $(PORT_BIN) || true
	$(Q)$(RUN_ENV) TEST_RUNNER='$(TEST_RUNNER)' WRAP='$(TEST_RUNNER)' KINDS='unit api prog' PROCS='1 4' LIMIT=600 tests/run

test-matrix:
	$(Q)MAKE='$(MAKE)' BUILD='$(BUILD)' JOBS='$(JOBS)' tests/matrix
print-out:
	@echo '$(OUT)'
