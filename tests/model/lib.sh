# What the scripts that run models share: tests/script/model.sh, tests/script/model_chan.sh,
# tests/long/model_mutants.sh.
[ -z "$SAN" ] || { echo 'skipped: the checker switches stacks by itself'; exit 77; }
cp -r src "$WORK/src"
case $ARCH in x86_64) arch_flags=-mno-red-zone ;; *) arch_flags= ;; esac

# The library's own sources stand in for those of the same name beside the model: <chan.c> is
# src/sync/chan.c.
compile() { # model source-directory output flags...
    local model=$1 src=$2 out=$3
    shift 3
    # shellcheck disable=SC2086
    "$CC" -O2 -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function \
        $arch_flags -DARCH_RETURNS_APART= \
        -ffunction-sections -Wl,--gc-sections -iquote tests/model -iquote "$src" \
        -iquote "$src/arch/$ARCH" -idirafter "$src" -Iinclude "$@" \
        "tests/model/$model.c" "$src/arch/$ARCH/context.c" "$src/arch/$ARCH/switch.S" -o "$out"
}
limited() { (ulimit -t 250 && "$1"); } # of its own time: others may be on the machine
holds() { # name model flags...
    local name=$1 model=$2
    shift 2
    compile "$model" src "$WORK/model" "$@" || { echo "$name does not compile"; exit 1; }
    limited "$WORK/model" || { echo "$name fails"; exit 1; }
}
fails() { # name: the mutant is in $WORK/model
    limited "$WORK/model" >"$WORK/log"
    [ $? = 1 ] && grep -q '^wrong: ' "$WORK/log" ||
        { echo "the mutant \"$1\" is not found"; cat "$WORK/log"; exit 1; }
    echo "found: $1 ($(sed -n 's/^wrong: //p' "$WORK/log"))"
}
mutant() { # model name file sed-script flags...: the library with one step changed, in its model
    local model=$1 name=$2 file=$3 script=$4
    shift 4
    sed -i "$script" "$WORK/src/$file"
    cmp -s "src/$file" "$WORK/src/$file" &&
        { echo "the mutant \"$name\" changes nothing: has the code moved on?"; exit 1; }
    compile "$model" "$WORK/src" "$WORK/model" "$@" -w ||
        { echo "the mutant \"$name\" does not compile"; exit 1; }
    cp "src/$file" "$WORK/src/$file"
    fails "$model: $name"
}
