# Tests: one program per file, built into $(OUT)/tests and run by tests/run.
#
#   make test [T=substring]     everything, each in its time limit; T picks tests by name
#   make test-stress SECONDS=n  the stress programs, n seconds each at 1, 2 and 16 Ps
#   make test-all               the same suite on the debug build, the sanitizers, clang, valgrind,
#                               and tests/long (make test-long): browser, debugger, hammer
#   make test-sanitizers        the suite and the stress programs under ASan, UBSan, TSan and
#                               memcheck, 1, 2 and 16 Ps
#   make test-seeds SEEDS=n     the tests of channels, locks, timers, contexts over n seeds
#   make soak MINUTES=n         everything at once for n minutes (30) at 1, 2 and 16 Ps each,
#                               stopped and continued
#   make search MINUTES=n       every searcher for n minutes (60), side by side, from new seeds:
#                               docs/HACKING.md
#   make test-servers           the hook with redis, PostgreSQL, libcurl, SQLite, timed, and crowds
#                               of other libraries; STRICT=1: throughput too
#   make test-mutants           planted bugs (tests/mutants/*.patch), each found by its test
#   make lint                   the form of the sources: clang-format, columns; part of make test
#   make demo                   the tour
#
# A test that does not compile fails as one test; the others still run.
#
# What tests need beyond a compiler and the machine has not is brought into $(BUILD)/deps first, and
# changes nothing else (tests/deps). NODEPS=1: nothing is brought, and they are skipped.

T        ?=
NODEPS   ?=
SECONDS  ?= 1
PARALLEL  = $(if $(findstring jobserver,$(MAKEFLAGS))$(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

TEST_SRC := $(sort $(wildcard tests/unit/*.c tests/api/*.c tests/prog/*.c tests/stress/*.c))
TEST_BIN := $(TEST_SRC:tests/%.c=$(OUT)/tests/%)
# The hook's, linked with it and to be preloaded. A sanitizer has hooks of its own in libc.
HOOK_TESTS := $(if $(SAN),,$(sort $(wildcard tests/hook/*.c)))
TEST_BIN += $(HOOK_TESTS:tests/%.c=$(OUT)/tests/%)
TEST_BIN += $(HOOK_TESTS:tests/hook/%.c=$(OUT)/tests/preload/%)
# Programs made for threads, which know nothing of gort. Run as they are, too: "native".
THREADS_TESTS := $(if $(SAN),,$(sort $(wildcard tests/threads/*.c)))
TEST_BIN += $(THREADS_TESTS:tests/%.c=$(OUT)/tests/%)
# What a program sees, once more with the shared library.
SO_TESTS := $(if $(SAN)$(TEST_RUNNER),,$(wildcard tests/api/*.c tests/prog/*.c))
TEST_BIN += $(patsubst tests/api/%.c,$(OUT)/tests/api-so/%,\
            $(SO_TESTS:tests/prog/%.c=$(OUT)/tests/prog-so/%))
# With OpenSSL, where its headers are.
EX_SSL   := $(if $(wildcard /usr/include/openssl/ssl.h),,examples/tls.c)
EX_SRC   := $(filter-out $(EX_SSL),$(sort $(wildcard examples/*.c)))
EX_BIN   := $(EX_SRC:examples/%.c=$(OUT)/examples/%)
# The larger one.
HTTPD    := $(OUT)/examples/httpd/httpd
HTTPD_O  := $(patsubst examples/%.c,$(OUT)/examples/%.o,$(sort $(wildcard examples/httpd/*.c)))
EX_BIN   += $(HTTPD)
# Examples in C++, by the sister of the compiler, where there is one.
ifeq ($(origin CXX),default)
CXX      := $(patsubst %cc,%c++,$(subst gcc,g++,$(subst clang,clang++,$(CC))))
endif
EX_CXX   := $(if $(shell command -v $(firstword $(CXX)) 2>/dev/null),$(wildcard examples/*.cc))
EX_BIN   += $(EX_CXX:examples/%.cc=$(OUT)/examples/%)
# Unwind tables: gcc for riscv64 makes none unless told to, and pthread_exit unwinds.
USERFLAGS := -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -fno-omit-frame-pointer \
             -fasynchronous-unwind-tables \
             -pthread -Iinclude $(CLASH)
CXXUSER  := $(patsubst -std=%,-std=c++17,$(USERFLAGS)) -Wconversion

.PHONY: test test-sanitizers test-checked test-mutants test-long test-programs
.PHONY: test-stress test-all test-valgrind examples demo
# x86-64 only: its coroutines are arch.h's inline switch. Sanitizers do not know them.
FAIR_BIN := $(if $(SAN)$(filter-out x86_64,$(ARCH)),,$(OUT)/tests/fair/fair)
test-programs: lib tools $(TEST_BIN) $(EX_BIN) $(FAIR_BIN)
examples: $(EX_BIN)

# Compiled, then linked: a change of the library links them anew and compiles none.
compile = $(Q)mkdir -p $(@D); $(CC) $(CFLAGS) $(1) -MMD -MP -c $< -o $@
# White box: every name of the library is visible.
$(OUT)/tests/unit/%.o: tests/unit/%.c
	$(call compile,$(LIBFLAGS) $(LIBSAN) $(USERSAN))
$(OUT)/tests/unit/%: $(OUT)/tests/unit/%.o $(OUT)/libgort-white.a
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) $(LIBFLAGS) $(USERSAN) $< $(OUT)/libgort-white.a -o $@
HOOK_LINK = -L$(OUT) -Wl,-rpath,$(abspath $(OUT)) -Wl,--no-as-needed
$(OUT)/tests/hook/%.o: tests/hook/%.c
	$(call compile,$(USERFLAGS))
$(OUT)/tests/hook/%: $(OUT)/tests/hook/%.o $(OUT)/libgort-hook.so
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $< $(HOOK_LINK) -lgort-hook -lgort -o $@
$(OUT)/tests/preload/%: $(OUT)/tests/hook/%.o $(OUT)/libgort-hook.so
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $< $(HOOK_LINK) -lgort -o $@
$(OUT)/tests/threads/%: tests/threads/%.c $(OUT)/libgort-hook.so
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) -MMD -MP $< -o $@ -lm
define with_so
$(OUT)/tests/$(1)-so/%: $(OUT)/tests/$(1)/%.o $(OUT)/libgort.so
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $$< $(HOOK_LINK) -lgort -o $$@ -lm
endef
$(eval $(call with_so,api))
$(eval $(call with_so,prog))
# The others see what a program sees: the header and the library.
$(OUT)/tests/%.o: tests/%.c
	$(call compile,$(USERFLAGS) $(USERSAN))
$(OUT)/tests/%: $(OUT)/tests/%.o $(OUT)/libgort.a
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $< $(OUT)/libgort.a -o $@ -lm
$(OUT)/examples/%.o: examples/%.c
	$(call compile,$(USERFLAGS) $(USERSAN))
$(OUT)/examples/%: $(OUT)/examples/%.o $(OUT)/libgort.a
	$(call say,EXAMPLE,$@)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $< $(OUT)/libgort.a -o $@ -lm
$(HTTPD): $(HTTPD_O) $(OUT)/libgort.a
	$(call say,EXAMPLE,$@)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $^ -o $@
$(OUT)/examples/tls: $(OUT)/examples/tls.o $(OUT)/libgort.a
	$(call say,EXAMPLE,$@)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $< $(OUT)/libgort.a -lssl -lcrypto -o $@
$(OUT)/examples/%.o: examples/%.cc
	$(Q)mkdir -p $(@D); $(CXX) $(CFLAGS) $(CXXUSER) $(USERSAN) -MMD -MP -c $< -o $@
$(EX_CXX:examples/%.cc=$(OUT)/examples/%): $(OUT)/examples/%: $(OUT)/examples/%.o $(OUT)/libgort.a
	$(call say,EXAMPLE,$@)
	$(Q)$(CXX) $(CFLAGS) $(CXXUSER) $(USERSAN) $< $(OUT)/libgort.a -o $@
.PRECIOUS: $(OUT)/tests/%.o $(OUT)/tests/unit/%.o $(OUT)/tests/hook/%.o $(OUT)/examples/%.o

RUN_ENV = OUT='$(OUT)' CC='$(CC)' ARCH='$(ARCH)' SAN='$(SAN)' DEBUG='$(DEBUG)' T='$(T)' \
          JOBS='$(JOBS)' MAKE='$(MAKE)' DEPS='$(abspath $(BUILD)/deps)' NODEPS='$(NODEPS)'

# A program that does not build fails, also where an older one is still there.
test:
	$(Q)built=true; \
	$(MAKE) --no-print-directory -k $(PARALLEL) test-programs || built=false; \
	$(if $(SAN)$(TEST_RUNNER),true,$(RUN_ENV) tests/deps test); \
	$(RUN_ENV) STRESS_SECONDS=1 tests/run && \
	{ $$built || { echo 'not all of the programs above could be built'; exit 1; }; }

test-stress:
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) test-programs
	$(Q)$(RUN_ENV) STRESS_SECONDS='$(SECONDS)' KINDS=stress \
	    LIMIT=$$(($(SECONDS) * 4 + 120)) tests/run

# Each variant has a directory of its own; what the compiler cannot do is left out with a word.
can = $(shell echo 'int main(void){return 0;}' | $(1) -x c - -o /dev/null 2>/dev/null && echo yes)
test-all:
	$(Q)status=0; \
	for v in '' DEBUG=1 $(if $(call can,clang),CC=clang); do \
	    echo "== make test $$v"; \
	    $(MAKE) --no-print-directory $$v test || status=1; \
	done; \
	$(MAKE) --no-print-directory test-sanitizers || status=1; \
	$(MAKE) --no-print-directory test-seeds || status=1; \
	$(MAKE) --no-print-directory test-long || status=1; \
	$(MAKE) --no-print-directory test-stress SECONDS=20 || status=1; \
	$(MAKE) --no-print-directory test-servers || status=1; \
	exit $$status

# The whole suite with the stress programs, at 1, 2 and 16 Ps, under each checker. The hook's tests
# are not part of it: a sanitizer has hooks of its own in libc, and would see libc's calls twice.
SUITE := unit api prog script stress
test-sanitizers:
	$(Q)status=0; \
	for s in $(foreach s,address undefined thread,\
	        $(if $(call can,$(CC) -fsanitize=$(s)),$(s))); do \
	    echo "== SAN=$$s"; \
	    $(MAKE) --no-print-directory SAN=$$s test-checked || status=1; \
	done; \
	echo '== valgrind'; \
	$(MAKE) --no-print-directory test-valgrind || status=1; \
	exit $$status
test-checked:
	$(Q)$(MAKE) --no-print-directory -k $(PARALLEL) test-programs || true
	$(Q)$(RUN_ENV) STRESS_SECONDS=2 KINDS='$(SUITE)' LIMIT=600 tests/run

# What takes long, or needs a browser, a debugger, servers.
test-long:
	$(Q)$(MAKE) --no-print-directory -k $(PARALLEL) test-programs || true
	$(Q)$(RUN_ENV) KINDS=long LIMIT=1800 JOBS=1 tests/run

# Memcheck runs one thread at a time, slowly. The scripts run what it cannot follow (a compiler,
# make) and start their programs themselves: they are left out. What the sanitizers cannot have it
# has: whole programs.
test-valgrind:
	$(Q)if ! command -v valgrind >/dev/null; then \
	    echo 'valgrind is not installed: left out'; exit 0; fi; \
	$(MAKE) --no-print-directory -k $(PARALLEL) test-programs || true; \
	$(RUN_ENV) STRESS_SECONDS=2 KINDS='$(filter-out script,$(SUITE)) threads' \
	    LIMIT=900 VALGRIND=1 \
	    WRAP='valgrind -q --error-exitcode=99 --fair-sched=yes' tests/run

# Real servers, timed. `make test` runs the same programs without judging by the clock.
.PHONY: test-servers
test-servers: $(OUT)/libgort-hook.so
	$(Q)$(RUN_ENV) tests/servers/run.sh || [ $$? = 77 ]

SOAK_SRC := $(sort $(wildcard tests/soak/*.c))
.PHONY: soak
$(OUT)/tests/soak/soak: $(SOAK_SRC) tests/soak/soak.h tests/lib/test.h $(OUT)/libgort.a
	$(call say,TEST,tests/soak)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) $(USERSAN) $(SOAK_SRC) $(OUT)/libgort.a -o $@ -lm
soak: $(OUT)/tests/soak/soak
	$(Q)OUT='$(OUT)' MINUTES='$(or $(MINUTES),$(SOAK_MINUTES),30)' tests/soak/run

.PHONY: search
search:
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) test-programs
	$(Q)OUT='$(OUT)' CC='$(CC)' MAKE='$(MAKE)' MINUTES='$(or $(MINUTES),60)' tests/search

SEEDS ?= 200
.PHONY: test-seeds
test-seeds:
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) test-programs
	$(Q)OUT='$(OUT)' SEEDS='$(SEEDS)' JOBS='$(JOBS)' tests/seeds $(T)

test-mutants: lib
	$(Q)tests/mutants/run

.PHONY: lint
lint:
	$(Q)bash tests/script/lint.sh

demo: $(OUT)/examples/demo
	$(Q)$(OUT)/examples/demo

-include $(TEST_BIN:=.d) $(EX_BIN:=.d)
