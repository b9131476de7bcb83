# Compact stacks, the short form of `make test-compact`: one set of programs with each linker there
# is; and with little address space.
. tests/compact/lib
for linker in gold bfd lld; do
    has_linker $linker || continue
    build $linker "$WORK/features" tests/compact/features.c
    GORT_MAXPROCS=2 "$WORK/features" "$(mode_of $linker)"
done
for linker in gold bfd lld; do
    has_linker $linker || continue
    build $linker "$WORK/limits" tests/compact/limits.c
    GORT_MAXPROCS=2 "$WORK/limits" "$(mode_of $linker)"
done
