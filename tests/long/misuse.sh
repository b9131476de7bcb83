# Every state × every call × every way out, against libgort.a and libgort.so:
# tests/script/misuse.sh.
MISUSE=all exec bash tests/script/misuse.sh
