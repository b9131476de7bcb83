# The benchmarks. They need a compiler and python3; a `go` on the PATH adds Go's columns.
#
#   make bench [B='yield echo'] [RUNS=5]     side by side; the table, bench/results.{json,svg}
#       PEERS=dir                            with the peers whose sources are there (bench/peers)
#       GO=path                              with that go
#   make bench-report                        the last full run into docs: table, plot, chart
#   make bench-echo [RUNS=5]                 the servers only: echo, HTTP, an idle one woken
#   make bench-instructions [UPDATE=1]       instructions per operation against the kept table
#   make bench-trace                         what a trace costs, per switch (wrk: and for a server)
#   make bench-alloc                         gort_alloc against malloc
#   make bench-tls [RUNS=5]                  examples/tls.c beside Go's crypto/tls
#   make bench-threads [RUNS=3] [UPDATE=1]   servers with a thread for each connection, natively and
#                                            by gort-run; UPDATE: the table into docs/threads.md
#   make bench-build                         the programs only: $(OUT)/bench/
#   make bench-hook [B=pipe]                 what the hook adds to each call that does not block
#
# bench/go is the twin in Go.

BENCH     := $(OUT)/bench
BENCHLIB  := $(OUT)/libgort.a
BENCHC     = $(CC) $(CFLAGS) -std=gnu11 $(WARN) -pthread -Iinclude -iquote bench $(USERSAN)
GO        ?= go
B         ?=
RUNS      ?= 5
PEERS     ?=
UPDATE    ?=
BENCHBIN  := $(addprefix $(BENCH)/,bench hold floor pthread load alloc)

.PHONY: bench bench-alloc bench-hook bench-build bench-go bench-peers bench-instructions
bench: bench-build bench-go bench-peers
	$(Q)command -v python3 >/dev/null || { echo '  bench needs python3'; exit 1; }
	$(Q)python3 bench/run --dir $(BENCH) --runs $(RUNS) $(B)
.PHONY: bench-report
bench-report:
	$(Q)python3 bench/report bench
bench-echo: B := echo http wake
bench-echo: bench
bench-instructions: $(BENCH)/bench
	$(Q)UPDATE='$(UPDATE)' bench/instructions $(BENCH)/bench
bench-alloc: $(BENCH)/alloc
	$(Q)GORT_MAXPROCS=1 $(BENCH)/alloc
	$(Q)GORT_MAXPROCS=2 $(BENCH)/alloc
bench-build: $(BENCHBIN)
bench-hook: $(BENCH)/hook_cost
	$(Q)for i in 1 2 3; do \
	    GORT_MAXPROCS=2 $(BENCH)/hook_cost $(B) && exit 0; \
	done; exit 1 # see there
$(BENCH)/hook_cost: bench/hook_cost.c $(OUT)/libgort-hook.so
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BENCHC) -fno-strict-aliasing $< -o $@ \
	    -L$(OUT) -Wl,-rpath,$(abspath $(OUT)) -Wl,--no-as-needed -lgort-hook -lgort -ldl
test-programs: bench-build # for tests/long/bench_smoke.sh

$(BENCH)/bench: bench/bench.c bench/scale.c bench/serve.c bench/workloads.h \
    include/gort.h $(BENCHLIB)
$(BENCH)/hold: bench/hold.c bench/hold_beat.c bench/hold.h include/gort.h $(BENCHLIB)
$(BENCH)/alloc: bench/alloc.c include/gort.h $(BENCHLIB)
$(BENCH)/floor: bench/floor.c
$(BENCH)/pthread: bench/pthread.c bench/peer.h bench/ring.h
$(BENCH)/load: bench/load.c bench/histogram.h
$(BENCHBIN) $(BENCH)/threads_load $(BENCH)/threads_lives: bench/bench.h bench/bench.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BENCHC) $(filter %.c,$^) $(filter %.a,$^) -o $@

# Where OpenSSL's headers are.
.PHONY: bench-tls
$(BENCH)/tls_load: bench/tls_load.c examples/tls.h $(BENCHLIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -std=gnu11 -Wall -Wextra -pthread -Iinclude $< $(BENCHLIB) \
	    -lssl -lcrypto -o $@
bench-tls: $(BENCH)/tls_load $(OUT)/examples/tls bench-go
	$(Q)bench/tls $(BENCH) $(OUT)/examples/tls $(RUNS)
# Where mariadbd and libmicrohttpd are, or tests/deps can bring them.
.PHONY: bench-threads
$(BENCH)/threads_load: bench/threads_load.c bench/histogram.h
$(BENCH)/threads_lives: bench/threads_lives.c
bench-threads: $(BENCH)/threads_load $(BENCH)/threads_lives $(OUT)/libgort-hook.so
	$(Q)bench/threads $(OUT) $(RUNS) $(BENCH)/threads.txt
	$(Q)python3 bench/threads_table $(BENCH)/threads.txt $(if $(UPDATE),docs/threads.md)
# White box: it turns the recording on and off by hand.
.PHONY: bench-trace
$(BENCH)/trace_cost: bench/trace_cost.c examples/http.c $(OUT)/libgort-white.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBFLAGS) $< $(OUT)/libgort-white.a -o $@
bench-trace: $(BENCH)/trace_cost
	$(Q)for w in pingpong yield spawn; do GORT_MAXPROCS=1 $< $$w 2; done
	$(Q)if command -v wrk >/dev/null; then \
	    $< http 10 | grep off; \
	else echo '  no wrk: without the server'; fi

# The comparators that may be absent: with a word, and no figure of theirs in the table.
bench-go:
	$(Q)mkdir -p $(BENCH)
	$(Q)if command -v $(GO) >/dev/null; then cd bench/go && \
	    GOCACHE="$${GOCACHE:-$(abspath $(BENCH))/gocache}" \
	    $(GO) build -buildvcs=false -o $(abspath $(BENCH))/gobench . ; \
	else echo '  no go on the PATH: without its columns'; rm -f $(BENCH)/gobench; fi
bench-peers: # named or not, none of them is needed
	$(Q)CC='$(CC)' CXX='$(CXX)' bench/peers $(BENCH) $(PEERS)

# Compact stacks (docs/compact.md): the figures beside Go's, and ten million goroutines at once.
#
#   make bench-compact              bytes, creation, check, split, depth, idle connections
#   make bench-10m [N=10000000]     with a progress bar; needs 17 GB of memory
#
N             ?= 10000000
COMPACT_LINKER := $(firstword $(foreach l,lld gold bfd,$(if $(shell command -v ld.$(l)),$(l))))
$(BENCH)/compact: bench/compact.c bench/bench.h include/gort.h $(SPLIT)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BENCHC) -fsplit-stack -maccumulate-outgoing-args -fuse-ld=$(COMPACT_LINKER) \
	    bench/compact.c $(SPLIT) -o $@
.PHONY: bench-compact bench-10m
bench-compact: $(BENCH)/compact bench-go
	$(Q)$(BENCH)/compact mode
	$(Q)echo '# three times in turn:' \
	    'the first one pays for memory that the machine had not touched'
	$(Q)for i in 1 2 3; do $(BENCH)/compact memory 1000000; \
	    [ ! -x $(BENCH)/gobench ] || $(BENCH)/gobench memory 1000000 | sed 's/^/go /'; done
	$(Q)$(BENCH)/compact check
	$(Q)$(BENCH)/compact split
	$(Q)$(BENCH)/compact recurse 10
	$(Q)$(BENCH)/compact recurse 900
	$(Q)$(BENCH)/compact echo 10000
	$(Q)$(BENCH)/compact burst 1000000
bench-10m: $(BENCH)/compact
	$(Q)free -g 2>/dev/null | head -2
	$(Q)$(BENCH)/compact park $(N)
