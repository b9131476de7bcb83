/* Public calls in children, those too that share the memory. */
#include "../lib/child_calls.h"

int main(int argc, char **argv) { return walk(argc, argv, KINDS); }
