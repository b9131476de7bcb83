# The hook: $(OUT)/libgort-hook.so, libc's blocking calls for goroutines (docs/hook.md).
#
# It finds libgort.so beside itself, and is to be loaded before libc: linked first, or preloaded.

HOOK_SRC := $(sort $(wildcard src/hook/*.c src/threads/*.c))
HOOK_OBJ := $(HOOK_SRC:%.c=$(OUT)/pic/%.o)

.PHONY: hook
all: hook
hook: $(OUT)/libgort-hook.so

$(HOOK_OBJ): LIBFLAGS += -falign-functions=64 -U_FORTIFY_SOURCE -fno-builtin \
    -Wno-unknown-warning-option -Wno-nonnull-compare -Wno-deprecated-declarations
$(OUT)/libgort-hook.so: $(HOOK_OBJ) $(OUT)/libgort.so src/hook/hook.mk
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(USERSAN) -shared -Wl,-soname,libgort-hook.so \
	    -Wl,-z,now -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' \
	    -Wl,--no-as-needed -o $@ $(HOOK_OBJ) -L$(OUT) -lgort -pthread -ldl

-include $(HOOK_OBJ:.o=.d)
