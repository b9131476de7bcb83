# The tools: build/bin/*, plain C programs that need nothing of the library.

TOOL_SRC := $(wildcard tools/*.c)
TOOL_BIN := $(TOOL_SRC:tools/%.c=$(OUT)/bin/%)

.PHONY: tools
all: tools
tools: $(TOOL_BIN)

$(OUT)/bin/%: tools/%.c Makefile
	$(call say,TOOL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter $< -o $@
