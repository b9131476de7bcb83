/* Block and mutex profiles: over all random numbers the sums of what is picked are those of the
 * waits, to the last ns, and the counts to a hundredth of a percent. */
#include "inspect/profile.h"
#include "../lib/test.h"

int main(void) {
    const int64_t rate = 10007;
    const int64_t delays[] = {1, 2, 1000, 3336, 5003, 5004, 6000, 9999, 10006, 10007, 500000};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        uint64_t counts = 0, count;
        int64_t values = 0, value;
        for (int64_t r = 0; r < rate; r++) {
            if (!wait_picked(delays[i], rate, (uint64_t)r << 1, &count, &value)) continue;
            counts += count;
            values += value;
        }
        CHECK_EQ(values, rate * delays[i]);
        double waits = (double)counts / WAIT_UNIT;
        CHECKF(waits > rate * .9999 && waits < rate * 1.0001, "%f waits of %d", waits, (int)rate);
        CHECK(!wait_picked(0, rate, 0, &count, &value));
    }
    return 0;
}
