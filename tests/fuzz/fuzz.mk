# Fuzzing with clang's libFuzzer: make fuzz FUZZ_SECONDS=600

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang
FUZZ         := $(OUT)/fuzz

# The room that is fuzzed is compiled for it, with the sanitizers; of the rest it needs little.
.PHONY: fuzz
fuzz: $(OUT)/libgort-white.a
	$(Q)if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' | \
	    $(FUZZ_CC) -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then \
	    echo 'no clang with libFuzzer: left out'; exit 0; fi; \
	mkdir -p $(FUZZ)/corpus && \
	$(FUZZ_CC) -O1 -g -std=gnu11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    -Iinclude -iquote src -iquote src/arch/$(ARCH) \
	    tests/fuzz/http.c src/inspect/http.c $(OUT)/libgort-white.a -pthread \
	    -o $(FUZZ)/http && \
	cp tests/fuzz/http.seeds/* $(FUZZ)/corpus/ && \
	$(FUZZ)/http -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -dict=tests/fuzz/http.dict \
	    -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ)/ $(FUZZ)/corpus
