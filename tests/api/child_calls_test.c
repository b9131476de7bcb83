/* Public calls in children that have a copy of the memory. */
#include "../lib/child_calls.h"

int main(int argc, char **argv) { return walk(argc, argv, VFORK); }
