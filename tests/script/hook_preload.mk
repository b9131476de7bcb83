# For hook_preload.sh: a make with jobs, whose order does not matter.
.PHONY: all a b c
all: a b c
	@echo all
a b c:
	@sleep 0.01
