# gort: one hand-written Makefile, no configure step.
#
#   make                 build/libgort.a, build/libgort.so (and the hook, the tools)
#   make demo            the tour
#   make test            the test suite; T=substring picks tests
#   make install         PREFIX=/usr/local DESTDIR=
#   make clean           removes what was built; make distclean all of build/
#
#   CC=clang  SAN=address|thread|undefined  DEBUG=1 (ranks and invariants checked)  V=1 (commands)
#   JOBS=n (as many as there are cores): how much of it is done at once; -j n goes before it
#
# A variant has a directory of its own under build/, so that they do not disturb each other.

CC      ?= cc
AR      ?= ar
OBJCOPY ?= objcopy
SAN     ?=
DEBUG   ?=
V       ?=
BUILD   ?= build
ifndef JOBS
JOBS    := $(shell nproc 2>/dev/null || echo 2)
endif

# None of make's own rules is used here: looking for them took 5 s of each make's time.
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

# All cores, unless a -j was given: on the command line it stays in force by itself, in the
# environment it is looked for. A make that another make has called goes by that one's. `make clean
# all` does one after the other.
CLEANING := $(filter clean distclean,$(MAKECMDGOALS))
ifeq ($(MAKELEVEL)$(filter -j% j%,$(shell printf '%s' "$$MAKEFLAGS"))$(CLEANING),0)
MAKEFLAGS += -j$(JOBS)
endif

ifeq ($(origin CC),default)
CC := cc
endif
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
VARIANT := $(strip $(if $(SAN),-$(SAN)) $(if $(DEBUG),-debug) \
    $(if $(filter-out cc gcc,$(CC)),-$(notdir $(CC))))
VARIANT := $(subst $() ,,$(VARIANT))
OUT     := $(BUILD)$(if $(VARIANT),/variant$(VARIANT))
Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

# What is built for is asked of the compiler with its flags, so that -m32 is found out as well.
CFLAGS  ?= -O2 -g
PORTS   := $(sort $(patsubst src/arch/%/switch.S,%,$(wildcard src/arch/*/switch.S)))
ABI     := $(shell printf '__SIZEOF_POINTER__ __BYTE_ORDER__\n' | \
    $(CC) $(CFLAGS) -E -P -x c - 2>/dev/null)
ifneq ($(filter-out clean distclean,$(or $(MAKECMDGOALS),all)),)
ifeq ($(ABI),)
$(error the compiler '$(CC)' does not work here: \
    install one (Debian: build-essential), or name it with CC=)
else ifneq ($(word 1,$(ABI)),8)
$(error gort needs a 64-bit machine, and '$(CC)' builds for a 32-bit one (ports: $(PORTS)))
else ifneq ($(word 2,$(ABI)),1234)
$(error gort needs a little-endian machine, \
    and '$(CC)' builds for a big-endian one (ports: $(PORTS)))
else ifeq ($(filter $(ARCH),$(PORTS)),)
$(error gort has no port to '$(ARCH)' (ports: $(PORTS); docs/HACKING.md tells how to add one))
endif
endif

WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wno-unused-parameter
LIBFLAGS := -std=gnu11 $(WARN) -fvisibility=hidden -fno-strict-aliasing -fno-lto -pthread \
            -fasynchronous-unwind-tables \
           -Iinclude -iquote src -iquote src/arch/$(ARCH) $(if $(DEBUG),-DGORT_CHECKED)
ifeq ($(ARCH),x86_64)
LIBFLAGS += -mno-red-zone -fomit-frame-pointer -fno-plt
else # where a frame record does not tell the sp, a dump follows the chain of them (syscall.c)
LIBFLAGS += -fno-omit-frame-pointer
endif
# The library is the same for TSan, without its instrumentation: it sees whether TSan is there, and
# tells it about goroutines and their order (tsan_key.h, san.h).
# A frame touches each page of its stack, so none steps over a guard (stack.c). Tests and examples
# are compiled so too, and so is a program that asks pkg-config or CMake for its flags.
CLASH   := $(shell echo 'int x;' | $(CC) $(CFLAGS) -Werror -fstack-clash-protection \
    -c -x c - -o /dev/null 2>/dev/null && echo -fstack-clash-protection)
LIBFLAGS += $(CLASH)
USERSAN := $(if $(SAN),-fsanitize=$(SAN))
LIBSAN  := $(if $(filter thread,$(SAN)),,$(USERSAN))

# The floors, bottom to top (docs/TOUR.md). src/hook is a library of its own.
FLOORS  := base os/linux unwind mem mem/split sched sync io debug inspect api gc
SRC     := $(sort $(wildcard src/*.c $(FLOORS:%=src/%/*.c) src/arch/$(ARCH)/*.c))
ASM     := $(wildcard src/arch/$(ARCH)/*.S)
OBJ     := $(SRC:%.c=$(OUT)/obj/%.o) $(ASM:%.S=$(OUT)/obj/%.o)
PIC     := $(OBJ:$(OUT)/obj/%=$(OUT)/pic/%)

.PHONY: all lib clean distclean
all: lib
lib: $(OUT)/libgort.a $(OUT)/libgort-lean.a $(OUT)/libgort.so

$(OUT)/obj/%.o: %.c Makefile
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBFLAGS) $(LIBSAN) -MMD -MP -c $< -o $@
$(OUT)/obj/%.o: %.S src/arch/macros.S Makefile
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -iquote src -iquote src/arch/$(ARCH) -c $< -o $@
$(OUT)/pic/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBFLAGS) $(LIBSAN) -fPIC -MMD -MP -c $< -o $@
$(OUT)/pic/%.o: %.S src/arch/macros.S Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -fPIC -iquote src -iquote src/arch/$(ARCH) -c $< -o $@

# Arguments are in the vector registers there (split.c).
ifeq ($(ARCH),x86_64)
$(OUT)/obj/src/mem/split/split.o $(OUT)/pic/src/mem/split/split.o: LIBFLAGS += -mgeneral-regs-only
endif

# gdb loads the script that a program names in this section, if its safe path has it: here that of
# the sources, once installed the one in gdb's auto-load directory (packaging/install.mk).
GDB_SECTION = .debug_gdb_scripts
name_script = printf '\1%s\0'

# One object with only the public names visible, so that a program's own `lock` or `ready` can
# never meet ours. The white-box tests link libgort-white.a, where every name is visible.
$(OUT)/libgort.a: $(OBJ)
	$(call say,AR,$@)
	$(Q)$(CC) -r -nostdlib -o $(OUT)/gort.o $(OBJ)
	$(Q)$(name_script) '$(abspath tools/gort-gdb.py)' >$(OUT)/gort.script
	$(Q)$(OBJCOPY) -w --keep-global-symbol='gort_*' \
	    --add-section $(GDB_SECTION)=$(OUT)/gort.script \
	    --set-section-flags $(GDB_SECTION)=readonly,debug $(OUT)/gort.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(OUT)/gort.o
# The same without the floor inspect, for a program that never looks inside.
$(OUT)/libgort-lean.a: $(filter-out $(OUT)/obj/src/inspect/%,$(OBJ))
	$(call say,AR,$@)
	$(Q)$(CC) -r -nostdlib -o $(OUT)/gort-lean.o $^
	$(Q)$(name_script) '$(abspath tools/gort-gdb.py)' >$(OUT)/gort-lean.script
	$(Q)$(OBJCOPY) -w --keep-global-symbol='gort_*' \
	    --add-section $(GDB_SECTION)=$(OUT)/gort-lean.script \
	    --set-section-flags $(GDB_SECTION)=readonly,debug $(OUT)/gort-lean.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(OUT)/gort-lean.o
$(OUT)/libgort-white.a: $(OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(OBJ)
$(OUT)/libgort.so: $(PIC) src/gort.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(USERSAN) -shared -Wl,-soname,libgort.so.0 \
	    -Wl,--version-script=src/gort.map -Wl,-z,now -Wl,-z,nodelete -o $@ $(PIC) -pthread
	$(Q)ln -sf libgort.so $(OUT)/libgort.so.0

# Backtraces show the public call that waits, not what it ends in. (Channels, select, mutexes and
# wait groups are left as they are: a frame costs their plain case two instructions.)
SHOWN   := io/% sync/cond sync/ctx sync/group sync/rwmutex sync/sem sync/time
$(foreach f,$(SHOWN),$(OUT)/obj/src/$(f).o $(OUT)/pic/src/$(f).o): \
    LIBFLAGS += -fno-optimize-sibling-calls

# Taken in by the assembler, which tells make nothing.
$(OUT)/obj/src/inspect/page_html.o $(OUT)/pic/src/inspect/page_html.o: web/page.html

# What was brought for the tests stays (tests/deps).
clean:
	rm -rf $(filter-out $(BUILD)/deps,$(wildcard $(BUILD)/* $(BUILD)/.[!.]*))
distclean:
	rm -rf $(BUILD)

-include $(OBJ:.o=.d) $(PIC:.o=.d)
include src/mem/split/split.mk src/hook/hook.mk src/gc/gc.mk packaging/install.mk tools/tools.mk
include tests/tests.mk tests/fair/fair.mk tests/ports.mk tests/fuzz/fuzz.mk bench/bench.mk
