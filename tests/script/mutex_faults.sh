# Mutexes where the kernel takes membarrier away after the start (a filter that came late), once or
# for good.
set -u
for when in 2 1+ 2+ 1/2:7; do
    for procs in 2 4; do
        STRESS_SECONDS=1 GORT_MAXPROCS=$procs GORT_DEBUG=sysfault=membarrier:EPERM:$when \
            timeout 100 "$OUT/tests/stress/mutex_stress" >"$WORK/log" 2>&1 ||
            { cat "$WORK/log"
              echo "membarrier fails ($when) at $procs Ps: the mutexes do not get to their end"
              exit 1; }
    done
done
