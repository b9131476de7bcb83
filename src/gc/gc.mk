# The collector: $(OUT)/libgort-gc.a, where the Boehm collector is installed (man/gort-gc.7).

HAS_GC := $(shell printf '\043include <gc.h>\n\043include <gc/gc_mark.h>\nint gort;\n' | \
    $(CC) -x c -fsyntax-only - 2>/dev/null && echo yes)

.PHONY: gc
ifeq ($(HAS_GC),yes)
all: gc
endif
gc: $(OUT)/libgort-gc.a

$(OUT)/libgort-gc.a: $(OUT)/pic/src/gc/program/needs.o src/gc/gc.mk
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $<
-include $(OUT)/pic/src/gc/program/needs.d
