/*
 * The variables of the whole house.
 */
#include "base/upstairs.h"
#include "runtime.h"

Sched sched;
Settings settings;
Upstairs upstairs;
const OsClock *os_clock;
bool collect_on;
bool body_leads;
uint32_t collect_stopped;
