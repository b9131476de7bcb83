# Sums with points in time: every one in the library saturates (src/base/deadline.h), and every call
# of the header that takes a deadline or a duration is in tests/api/deadline_extremes_test.c.
set -u
status=0

# A raw sum or difference: a point in time, by the names that the house gives them, beside + or -.
# (The distance of two readings of the clock, `now - since`, cannot overflow.)
point='os_now\(\)|gort_now\(\)|coarse_now\(\)|now|deadline|until|when|due|then|soon|first'
point="($point|timers_first\(\)|since|scavenged|traced|reported)"
late='deadline|until|when|due|then|soon|timers_first\(\)'
wrong=$(grep -nE "\b$point \+ |\b($late) - |\+ (os_now|gort_now|coarse_now)\(" \
    $(find src -name '*.[ch]') |
    grep -vE '^src/base/deadline\.h:|: *\*|: */\*|first \+ i, list|s->first \+ |w->now|when - w->' )
if [ -n "$wrong" ]; then
    echo 'raw sums of points in time (use time_after or time_left of src/base/deadline.h):'
    echo "$wrong"
    status=1
fi

# The calls of the header, comments and line ends out of the way.
calls=$(sed 's|/\*.*\*/||' include/gort.h | tr '\n' ' ' | tr ';' '\n' |
    grep -E 'int64_t (deadline|ns|period)[,)]|int timeout_ms' | grep -v '#define' |
    grep -oE '\bgort_[a-z_]+\(' | tr -d '(' | grep -v '_$' | sort -u)
n=0
for c in $calls; do
    n=$((n + 1))
    grep -qE "ENTRY\($c," tests/api/deadline_extremes_test.c || {
        echo "$c takes a point in time and is not in tests/api/deadline_extremes_test.c"
        status=1
    }
done
[ "$n" -ge 30 ] || { echo "only $n calls of the header found"; status=1; }
exit $status
