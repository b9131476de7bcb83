#include "arch/generic/guard.h"
