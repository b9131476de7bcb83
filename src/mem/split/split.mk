# libgort_split.a: the library for programs built with -fsplit-stack (docs/compact.md). x86-64 only:
# gcc has the flag for no other port.
#
# It contains __morestack and a constructor that tells the library; signal handlers; the entries,
# which are public functions that check their stack; and the library itself. There the public
# functions are renamed, so that it calls itself without checks, and the compiler's notes are added,
# so that a linker leaves the entries as they are.

SPLIT := $(if $(filter x86_64,$(ARCH)),$(OUT)/libgort_split.a)
lib: $(SPLIT)

$(OUT)/split/gort.o: $(OUT)/libgort.a src/mem/split/split.mk
	$(Q)mkdir -p $(@D)
	$(Q)nm -g --defined-only $(OUT)/gort.o | \
	    awk '$$2 == "T" && $$3 !~ /^gort_split_/ {print $$3}' >$(@D)/names
	$(Q)awk '{print $$1, $$1 "_body"}' $(@D)/names >$(@D)/renamed
	$(Q)$(OBJCOPY) --redefine-syms=$(@D)/renamed --add-section .note.GNU-split-stack=/dev/null \
	    --add-section .note.GNU-no-split-stack=/dev/null $(OUT)/gort.o $@
$(OUT)/split/entries.o: src/mem/split/split.mk src/mem/split/program/entries.awk \
    src/mem/split/program/needs $(OUT)/split/gort.o
	$(Q)awk -f src/mem/split/program/entries.awk src/mem/split/program/needs $(@D)/names \
	    >$(@D)/entries.S
	$(Q)$(CC) -c $(@D)/entries.S -o $@
$(OUT)/split/morestack.o: src/mem/split/program/morestack.S src/mem/split/program/start.c \
    src/mem/split/split_abi.h src/arch/macros.S
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -iquote src -c src/mem/split/program/morestack.S -o $@
$(OUT)/split/%.o: src/mem/split/program/%.c src/mem/split/split_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -std=gnu11 $(WARN) -iquote src -fno-plt -c $< -o $@
$(OUT)/libgort_split.a: $(addprefix $(OUT)/split/,entries.o gort.o morestack.o start.o signals.o)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The test suite as compact programs, once per linker: the form of the stacks depends on it.
#
#   make test-compact [LINKERS='lld gold bfd'] [T=substring]
#
LINKERS      ?= lld gold bfd
COMPACT_SRC  := $(sort $(wildcard tests/api/*.c tests/prog/*.c))
COMPACT_BIN  := $(COMPACT_SRC:tests/%.c=tests/%)
linker_of     = $(patsubst compact-%,%,$(firstword $(filter compact-%,$(subst /, ,$(1)))))

.PHONY: test-compact test-compact-programs
test-compact:
ifeq ($(SPLIT),)
	@echo 'skipped: -fsplit-stack is known on x86-64 only'
else
	$(Q)status=0; for linker in $(LINKERS); do \
	    if ! command -v ld.$$linker >/dev/null; then \
	        echo "== no ld.$$linker here: left out"; continue; \
	    fi; \
	    echo "== gcc + $$linker"; \
	    $(MAKE) --no-print-directory -k $(PARALLEL) LINKERS=$$linker \
	        test-compact-programs || true; \
	    $(RUN_ENV) OUT='$(OUT)/compact-'$$linker KINDS='api prog' tests/run || status=1; \
	    $(RUN_ENV) LINKER=$$linker KINDS=compact PROCS='1 2' tests/run || status=1; \
	done; exit $$status
endif
COMPACT_ALL := $(foreach linker,$(LINKERS),$(addprefix $(OUT)/compact-$(linker)/,$(COMPACT_BIN)))
test-compact-programs: $(COMPACT_ALL)
$(COMPACT_ALL): $(OUT)/libgort_split.a
	$(call say,COMPACT,$@)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)$(CC) $(CFLAGS) $(USERFLAGS) -fsplit-stack -maccumulate-outgoing-args \
	    -fuse-ld=$(call linker_of,$@) $(subst $(OUT)/compact-$(call linker_of,$@)/,,$@).c \
	    $(OUT)/libgort_split.a -o $@ -lm
