# The mutants of ender.c that are no fence (those: tests/script/model_pairs.sh).
mutant ender 'the cause is not read after arming' sched/ender.c '/^void ender_arm/,/^}/s/^    if (load_seq(e->cause) != 0).*//'
mutant ender 'a strike readies before the stack is left' sched/ender.c 's/    while ((uint32_t)wait == ENDER_ARMING)/    while (0)/;s/(uint32_t)wait != ENDER_PARKED ||/(uint32_t)wait == ENDER_IDLE ||/'
mutant ender 'a late commit parks another wait' sched/ender.c '/^bool ender_parked/,/^}/s/uint64_t arming = ender_word(ticket, ENDER_ARMING);/uint64_t arming = load_seq(\&e->wait); if ((uint32_t)arming != ENDER_ARMING) return (uint32_t)arming != ENDER_HIT; ticket = arming >> 32;/'
mutant ender 'the commit does not see the hit' sched/ender.c 's/arming != ender_word(ticket, ENDER_HIT)/true/'
