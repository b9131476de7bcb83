/* Public calls in children, those too that share the memory. */
#include "../child_calls.h"

int main(int argc, char **argv) { return walk(argc, argv, KINDS); }
