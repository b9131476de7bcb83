# What src/mem/split/program/needs promises, against the compiler's own account of frames and calls:
# for each call, the deepest chain of calls that stays on the goroutine's stack.
. tests/compact/lib
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
echo 'int main(void) { return 0; }' |
    "$CC" -fcallgraph-info=su -x c -c - -o "$WORK/try.o" 2>/dev/null ||
    { echo "skipped: $CC has no -fcallgraph-info"; exit 77; }
for f in $(find src -name '*.c' ! -path 'src/arch/*' ! -path 'src/hook/*' ! -path \
    '*/program/*') src/arch/x86_64/*.c; do
    only=; [ $f != src/mem/split/split.c ] || only=-mgeneral-regs-only
    "$CC" -O2 -std=gnu11 -fvisibility=hidden -fno-strict-aliasing -mno-red-zone \
        -fomit-frame-pointer -fno-plt -pthread -Iinclude \
        -iquote src -iquote src/arch/x86_64 $only -fcallgraph-info=su -c $f \
        -o "$WORK/$(basename $f .c).o"
done
# What needs.py takes for jumps must not be calls.
for f in $(sed -n 's/^JUMPS = {\(.*\)}/\1/p' tests/compact/needs.py | tr -d "',"); do
    objdump -dr --no-show-raw-insn "$WORK"/*.o | awk -v f="$f" '
        /^[0-9a-f]+ </ { insn = "" } /^ +[0-9a-f]+:\t/ { insn = $2 }
        insn ~ /^call/ && $0 ~ "<" f ">|[ \t]" f "(-0x|$)" { print f " is called"; exit 1 }'
done
python3 tests/compact/needs.py src/mem/split/program/needs src/mem/split/split.h "$WORK"/*.ci
