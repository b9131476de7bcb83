# gRPC by its synchronous calls: a server, and a client with 500 threads (tests/programs/grpc.cc).
set -u
. tests/lib/threads.sh
begin grpc
protoc -I tests/programs --cpp_out="$WORK" --grpc_out="$WORK" \
    --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" echo.proto || fail 'protoc'
${CXX:-c++} -std=c++17 -I"$WORK" tests/programs/grpc.cc "$WORK"/echo.pb.cc "$WORK"/echo.grpc.pb.cc \
    -o "$WORK/grpc" $(pkg-config --cflags --libs grpc++ protobuf) -pthread ||
    fail 'it does not compile'
input=$WORK/input
mkfifo "$input"
for way in $ways; do
    rm -f "$WORK/address"
    start $way "$WORK/grpc" serve "$WORK/address" >"$WORK/said" 2>&1
    exec 7>"$input"
    await "test -e $WORK/address" || { cat "$WORK/said"; fail "$way: it does not begin"; }
    under $way "$WORK/grpc" ask "$(cat "$WORK/address")" 500 >"$WORK/out" 2>&1 ||
        { tail -60 "$WORK/out" "$WORK/said"; fail "$way: the client: $?"; }
    exec 7>&-
    ended || { cat "$WORK/said"; fail "$way: the server ended with $status"; }
    grep -q '^500 clients, right$' "$WORK/out" && grep -q '^4000 answered$' "$WORK/said" ||
        { cat "$WORK/out" "$WORK/said"; fail "$way: not as it should be"; }
    echo "$way: $(cat "$WORK/out" "$WORK/said" | grep 'kernel threads' | tr '\n' ' ')"
done
