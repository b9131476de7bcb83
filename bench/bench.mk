# The benchmarks. `make bench` needs nothing but a compiler; a `go` on the PATH adds Go's columns.
#
#   make bench-build                 the programs only: $(OUT)/bench/{bench,...}

BENCH     := $(OUT)/bench
BENCHLIB  := $(OUT)/libgort.a
BENCHC    := $(CC) $(CFLAGS) -std=gnu11 $(WARN) -pthread -Iinclude -iquote bench $(USERSAN)

.PHONY: bench-build
bench-build: $(BENCH)/bench

$(BENCH)/bench: bench/bench.c bench/scale.c bench/serve.c bench/bench.h bench/workloads.h include/gort.h $(BENCHLIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BENCHC) $(filter %.c,$^) $(BENCHLIB) -o $@
