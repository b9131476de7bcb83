# 10,000 connections held open with 1,000 of them active at a time: at most MAXPROCS + 8 threads,
# and no descriptor, allocation or memory is left when they are closed
# (tests/stress/io_many_stress.c).
set -u
[ -z "$SAN" ] || { echo 'skipped: ten thousand stacks with their shadow'; exit 77; }
ulimit -n "$(ulimit -Hn)"
for procs in 1 2 16; do
    echo "MAXPROCS=$procs"
    IO_MANY=${IO_MANY:-10000} STRESS_SECONDS=5 GORT_MAXPROCS=$procs timeout -s QUIT -k 5 600 \
        "$OUT/tests/stress/io_many_stress" || exit
done
