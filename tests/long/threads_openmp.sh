# OpenMP by GCC's library, and clang's where it is there (tests/programs/openmp.c).
set -u
. tests/lib/threads.sh
begin openmp
gcc -O2 -fopenmp tests/programs/openmp.c -o "$WORK/gomp" || fail 'it does not compile'
alike gomp "$WORK/gomp" 16
cat "$WORK/gomp.2"
tests/deps libomp
if ! lack libomp && clang -O2 -fopenmp tests/programs/openmp.c -o "$WORK/omp"; then
    alike omp "$WORK/omp" 16
    cat "$WORK/omp.2"
fi
