# stress-ng's stressors of threads.
set -u
. tests/lib/threads.sh
begin stressng
for way in $ways; do
    for what in 'pthread 2 --pthread-ops 3000 --pthread-max 400' 'mutex 1 --mutex-ops 3000' \
        'futex 1 --futex-ops 3000' 'nanosleep 1 --nanosleep-ops 500' \
        'tlb-shootdown 1 --tlb-shootdown-ops 20'; do
        under $way stress-ng --$what --verify --timeout 60 >"$WORK/out" 2>&1 &&
            grep -q 'successful run completed' "$WORK/out" ||
            { cat "$WORK/out"; fail "$way: --$what"; }
    done
    echo "$way: done"
done
