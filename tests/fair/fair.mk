# The searcher of unfairness: the library on a machine in virtual time (tests/fair/machine.c).
#
#   make test-fair MIXES=n   n mixes from a new seed on; `make test` takes some,
#                            tests/long/fair.sh more
POINTS := handoff_p give_p wakep wake_after_submit m_stop find_runnable home_send home_wait \
          idle_p_take global_put ready block_begin block_end park_begin
FAIR_WRAP := $(foreach f,pthread_create pthread_join pthread_detach $(POINTS),-Wl,--wrap=$(f))
$(OUT)/tests/fair/%.o: tests/fair/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBFLAGS) -Wno-missing-prototypes -MMD -MP -c $< -o $@
$(OUT)/tests/fair/fair: $(OUT)/tests/fair/mix.o $(OUT)/tests/fair/machine.o $(OUT)/libgort-white.a
	$(call say,TEST,tests/fair)
	$(Q)$(CC) $(CFLAGS) $(FAIR_WRAP) $^ -o $@ -pthread

MIXES ?= 1000
.PHONY: test-fair
test-fair: $(OUT)/tests/fair/fair
	$(Q)$(OUT)/tests/fair/fair $$(date +%s) $(MIXES)
-include $(OUT)/tests/fair/mix.d $(OUT)/tests/fair/machine.d
.PHONY: fair-wrap
fair-wrap: # for tests/fair/mutants.sh
	@echo '$(FAIR_WRAP)'
