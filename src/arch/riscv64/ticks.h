#include "arch/generic/ticks.h"
