# libgort_split.a: the library for programs built with -fsplit-stack (docs/compact.md). x86-64 only:
# other compilers' targets do not have the flag.
#
# Three objects: __morestack and a constructor that tells the library; the entries, which are public
# functions that check their stack; and the library itself with its public functions renamed, so that
# it calls itself without checks, and with the compiler's notes, so that a linker leaves the entries as
# they are.

SPLIT := $(if $(filter x86_64,$(ARCH)),$(OUT)/libgort_split.a)
lib: $(SPLIT)

$(OUT)/split/gort.o: $(OUT)/libgort.a split.mk
	$(Q)mkdir -p $(@D)
	$(Q)nm -g --defined-only $(OUT)/gort.o | awk '$$2 == "T" && $$3 !~ /^gort_split_/ {print $$3}' >$(@D)/names
	$(Q)awk '{print $$1, $$1 "_body"}' $(@D)/names >$(@D)/renamed
	$(Q)$(OBJCOPY) --redefine-syms=$(@D)/renamed --add-section .note.GNU-split-stack=/dev/null \
	    --add-section .note.GNU-no-split-stack=/dev/null $(OUT)/gort.o $@
$(OUT)/split/entries.o: split.mk src/split/entries.awk src/split/needs $(OUT)/split/gort.o
	$(Q)awk -f src/split/entries.awk src/split/needs $(@D)/names >$(@D)/entries.S
	$(Q)$(CC) -c $(@D)/entries.S -o $@
$(OUT)/split/morestack.o: src/split/morestack.S src/split/start.c src/split_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -c src/split/morestack.S -o $@
$(OUT)/split/start.o: src/split/start.c src/split_abi.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -std=gnu11 $(WARN) -c src/split/start.c -o $@
$(OUT)/libgort_split.a: $(addprefix $(OUT)/split/,entries.o gort.o morestack.o start.o)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
