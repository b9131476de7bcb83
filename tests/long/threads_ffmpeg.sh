# FFmpeg with its filters, encoders and decoders on eight threads; a library of its (OpenBLAS) makes
# threads before main.
set -u
. tests/lib/threads.sh
begin ffmpeg
source='testsrc=size=320x240:rate=25:duration=2'
for codec in mpeg4 libx264 ffv1; do
    alike "$codec" ffmpeg -v error -f lavfi -i "$source" -c:v "$codec" -threads 8 -f md5 -
done
ffmpeg -v error -y -f lavfi -i "$source" -c:v ffv1 "$WORK/it.mkv" </dev/null || fail 'no film'
alike decode ffmpeg -v error -threads 8 -i "$WORK/it.mkv" -vf scale=640:480,unsharp -f md5 -
cat "$WORK/decode.2"
