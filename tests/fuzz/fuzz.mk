# Fuzzing with clang's libFuzzer: make fuzz FUZZ_SECONDS=600

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang
FUZZ         := $(OUT)/fuzz

# The room that is fuzzed is compiled for it, with the sanitizers; of the rest it needs little. Each
# gets all of the time: http, the page's parser; line, the reader of line tables, which begins with
# real ones.
FUZZ_http := src/inspect/http.c
FUZZ_line := src/unwind/linetable.c src/unwind/sort.c
.PHONY: fuzz fuzz-http fuzz-line
fuzz: $(OUT)/libgort-white.a
	$(Q)if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' | \
	    $(FUZZ_CC) -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then \
	    echo 'no clang with libFuzzer: left out'; exit 0; fi; \
	$(MAKE) --no-print-directory fuzz-http fuzz-line

fuzz_build = mkdir -p $(FUZZ)/$(1) && \
	$(FUZZ_CC) -O1 -g -std=gnu11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    -Iinclude -iquote src -iquote src/arch/$(ARCH) \
	    tests/fuzz/$(1).c $(FUZZ_$(1)) $(OUT)/libgort-white.a -pthread -o $(FUZZ)/$(1)-fuzz
fuzz_run = $(FUZZ)/$(1)-fuzz -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ)/ $(2) $(FUZZ)/$(1)

fuzz-http: $(OUT)/libgort-white.a
	$(Q)$(call fuzz_build,http) && cp tests/fuzz/http.seeds/* $(FUZZ)/http/ && \
	$(call fuzz_run,http,-max_len=8192 -dict=tests/fuzz/http.dict)

fuzz-line: $(OUT)/libgort-white.a
	$(Q)$(call fuzz_build,line) && for v in 2 3 4 5; do for cc in $(CC) $(FUZZ_CC); do \
	    $$cc -O2 -gdwarf-$$v -Iinclude tests/fuzz/line.seed.c -o $(FUZZ)/seed && \
	    $(OBJCOPY) --dump-section .debug_line=$(FUZZ)/line/$$v-$$cc $(FUZZ)/seed /dev/null || \
	    exit 1; done; done && \
	$(call fuzz_run,line,-max_len=4096)
