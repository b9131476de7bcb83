# The models of tests/model: the library's own queue, and the protocol of submitting and giving up,
# in every interleaving. And each mutant, a step left out or done wrong, fails in its model.
set -u
[ -z "$SAN" ] || { echo 'skipped: the checker switches stacks by itself'; exit 77; }
cp -r src "$WORK/src"
compile() { # model source-directory output flags...
    local model=$1 src=$2 out=$3
    shift 3
    "$CC" -O2 -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function -iquote tests/model \
        -iquote "$src" -iquote "$src/arch/$ARCH" -Iinclude "$@" "tests/model/$model.c" -o "$out"
}
holds() { # name model flags...
    local name=$1 model=$2
    shift 2
    compile "$model" src "$WORK/model" "$@" || { echo "$name does not compile"; exit 1; }
    timeout 100 "$WORK/model" || { echo "$name fails"; exit 1; }
}
fails() { # name status-of-the-compiler: the mutant is in $WORK/model
    timeout 100 "$WORK/model" >"$WORK/log"
    [ $? = 1 ] && grep -q '^wrong: ' "$WORK/log" || { echo "the mutant \"$1\" is not found"; cat "$WORK/log"; exit 1; }
    echo "found: $1"
}
mutant() { # name file sed-script: the queue with one line changed, in its models
    cp "src/$2" "$WORK/src/$2"
    sed -i "$3" "$WORK/src/$2"
    cmp -s "src/$2" "$WORK/src/$2" && { echo "the mutant \"$1\" changes nothing: has the code moved on?"; exit 1; }
    for thieves in 1 2; do
        compile ring "$WORK/src" "$WORK/model" -DTHIEVES=$thieves -Wno-error || { echo "the mutant \"$1\" does not compile"; exit 1; }
        timeout 100 "$WORK/model" >"$WORK/log"
        [ $? = 1 ] && break
    done
    cp "src/$2" "$WORK/src/$2"
    fails "$1"
}

holds 'ring, one thief' ring -DTHIEVES=1
holds 'ring, two thieves' ring -DTHIEVES=2
holds 'submit and give up' submit
holds 'with the fence alone' submit -DPLAIN_DECREMENT
holds 'one that has not searched gives up' submit -DBYSTANDER

mutant 'one too many in the ring' runq.h 's/tail - head >= RING/tail - head > RING/'
mutant 'the tail before the place' runq.h '/store_rlx(&p->ring\[tail % RING\], gp);/d
    s|store_rel(&p->tail, tail + 1);.*|store_rel(\&p->tail, tail + 1); store_rlx(\&p->ring[tail % RING], gp);|'
mutant 'the owner pops without a CAS' runq.h 's/if (cas_rel(&p->head, &head, head + 1)) return gp;/store_rel(\&p->head, head + 1); return gp;/'
mutant 'the slot is taken without a CAS' runq.h 's/return cas_acq_rel(&p->runnext, &expect, NULL);/store_rel(\&p->runnext, NULL); return expect != NULL;/'
mutant 'the thief steals without a CAS' runq.c 's/if (cas_acq_rel(&victim->head, &head, head + n)) return n;/store_rel(\&victim->head, head + n); return n;/'
mutant 'the thief keeps what it runs' runq.c 's/store_rel(&p->tail, tail + n - 1)/store_rel(\&p->tail, tail + n)/'
mutant 'overflow without a CAS' runq.c 's/if (!cas_rel(&p->head, &head, head + RING \/ 2)) return false;/store_rel(\&p->head, head + RING \/ 2);/'

# On x86 the decrement is a fence by itself; a machine with a weaker one needs what is written there.
for flags in -DNO_SUBMIT_FENCE -DNO_RECHECK '-DNO_GIVE_UP_FENCE -DPLAIN_DECREMENT' '-DBYSTANDER -DONLY_SEARCHERS_LOOK'; do
    # shellcheck disable=SC2086
    compile submit src "$WORK/model" $flags || exit 1
    fails "submit $flags"
done
exit 0
