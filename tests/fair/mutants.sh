# Mutants of what keeps the scheduler fair. Each is the library with one file changed, linked before the rest of it; some mix of the
# first ones has to find it.
points=$(make -s --no-print-directory fair-wrap)
fair_mutant() { # name file sed-script kinds
    mkdir -p "$WORK/src/$(dirname "$2")"
    sed "$3" "src/$2" >"$WORK/src/$2"
    cmp -s "src/$2" "$WORK/src/$2" && { echo "the mutant \"$1\" changes nothing: has the code moved on?"; exit 1; }
    # shellcheck disable=SC2086
    "$CC" -O2 -std=gnu11 -w -fvisibility=hidden -fno-strict-aliasing -pthread -mno-red-zone -fomit-frame-pointer -Iinclude \
        -iquote "$WORK/src" -iquote src -iquote "src/arch/$ARCH" $points "$WORK/src/$2" "$OUT/tests/fair/mix.o" \
        "$OUT/tests/fair/machine.o" "$OUT/libgort-white.a" -o "$WORK/fair" || { echo "the mutant \"$1\" does not compile"; exit 1; }
    FAIR_KINDS=${4:-} "$WORK/fair" 1 400 >"$WORK/log" && { echo "the mutant \"$1\" is not found"; exit 1; }
    echo "found: $1 ($(sed -n 's/^\(seed [0-9]*\).*/\1/p' "$WORK/log" | head -1))"
}
fair_mutant 'the first case of a select' sync/select.c 's/^    if (unlikely(s->nlocks < n)) shuffle(m, w, n);//' chooser,chosen
fair_mutant 'a locked one is its own successor' sched/wake.c 's/home_is_next_locked(p) ? home_take_waiting_locked() : NULL/home_take_waiting_locked()/' yielder,reader
fair_mutant 'nobody looks out' sched/wake.c '/^void handoff_p/,/^}/s/^    look_out(m, first_idle);//' reader,sleeper
fair_mutant 'the global queue is passed by' sched/sysmon.c 's/passes_global_by(p, now) || over/false/' player,timed,sleeper,yielder
fair_mutant 'timers wait for the 61st round' sched/sysmon.c 's/load_acq(&p->timers.first) <= now \&\& load_rlx(&p->look) == 0/false/' player,yielder,sleeper,worker
fair_mutant 'short calls are one long slice' sched/sysmon.c 's/look_at_call(p, m, now, over)/look_at_call(p, m, now, false)/;s/^    if (over) {/    if (over \&\& !announced) {/' announced,yielder,sleeper
fair_mutant 'a slice begins with each hop' sched/bound.c 's/home->inherit = m->inherit;/home->inherit = false;/' player,yielder,sleeper
fair_mutant 'the pair stays in the slot' sched/find.c '/^static void slot_to_ring/,/^}/s/^    if (runnext_take.*//' player,loop,yielder,sleeper
fair_mutant 'a guest beside a loop' sched/sysmon.c 's/ || (m \&\& soft_waits(m))//' guest,loop
fair_mutant 'guests start again at the end' sched/preferred.c 's/glist_prepend(&sched.global, &m->soft);/glist_append(\&sched.global, \&m->soft);/' blocker,yielder,loop-with-calls
fair_mutant 'a flood overtakes the oldest' sched/sched.c '/^static void spill_new/,/^}/s/likely(first == NULL)/true/' flooder,loop,yielder,sleeper,worker
fair_mutant 'the newest are always first' sched/globalq.c 's|s->debt > 0 ? 0 : s->n - 1|s->n - 1|' flooder,loop,yielder,sleeper
fair_mutant 'every second slice to the head of the FIFO' sched/find.c 's/over \&\& ring \&\& global_joins(p)/false/' loop
