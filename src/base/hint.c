/*
 * What is allowed, but hardly meant. GORT_DEBUG=hints=1 asks for it, and each kind is told once.
 *
 *   - gort_go before gort_main returns -ENOTCONN, and nothing runs. A program that does not look at
 *     the result waits for ever.
 *   - A deadline is an instant. One that lies before this program began, and is not 0 or less, was
 *     most likely meant as a duration: 5 * GORT_SEC is five seconds after the machine booted.
 *
 * A checked build has it on. It is a setting, too: authors who make these mistakes use the library
 * as it is installed, and the manual names the setting where it warns of them. It is off otherwise,
 * because both are part of the contract: a program may ask whether there is a runtime, and take a
 * deadline from a peer that is older than itself.
 */
#include "base/hint.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/warn.h"

static int64_t born; /* when the library was loaded */

__attribute__((constructor(101))) static void hint_begin(void) { born = os_now(); }

NOINLINE int hint_no_runtime(const char *call) {
    if (load_rlx(&sched.epoch) == 0 && !in_forked_child() && env_hints())
        warn_once(WARN_EARLY,
                  "%s before gort_main returns -ENOTCONN, and nothing runs: call it from the "
                  "function that gort_main is given",
                  call);
    return -ENOTCONN;
}

NOINLINE int hint_passed(int64_t deadline) {
    if (settings.hints && deadline > 0 && deadline < born && settings.sim == 0)
        warn_once(WARN_DURATION,
                  "a deadline of %ldms lies before this program began: it is an instant of "
                  "gort_now(), not a duration",
                  deadline / GORT_MS);
    return -ETIMEDOUT;
}
