# Fuzzing with clang's libFuzzer: make fuzz FUZZ_SECONDS=600

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang

.PHONY: fuzz
fuzz:
	$(Q)if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }' | \
	    $(FUZZ_CC) -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then echo 'no clang with libFuzzer: left out'; exit 0; fi; \
	mkdir -p $(BUILD)/fuzz/corpus && \
	$(MAKE) --no-print-directory CC=$(FUZZ_CC) SAN=address lib $(BUILD)/variant-address-$(notdir $(FUZZ_CC))/libgort-white.a >/dev/null && \
	$(FUZZ_CC) -O1 -g -std=gnu11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iinclude -iquote src -iquote src/arch/$(ARCH) \
	    tests/fuzz/http.c src/http.c $(BUILD)/variant-address-$(notdir $(FUZZ_CC))/libgort-white.a -pthread -Wl,-z,muldefs -o $(BUILD)/fuzz/http && \
	cp tests/fuzz/http.seeds/* $(BUILD)/fuzz/corpus/ && \
	$(BUILD)/fuzz/http -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -dict=tests/fuzz/http.dict -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus
