# One name, one thing: no function, type or tag is defined in two files of src, static ones
# included. Ports (src/arch/<cpu>, src/os/<system>) define the same names, each for its machine;
# what is linked into programs (program/) defines libc's.
set -eu
definitions() { # file...: "name file:line" of what each defines at its outermost level
    awk '
    function emit(n) { print n, FILENAME ":" FNR }
    FNR == 1 { text = ""; depth = 0; comment = 0 }
    { line = $0
      if (comment) { if (!sub(/^.*\*\//, "", line)) next; comment = 0 }
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line); gsub(/\047([^\047\\]|\\.)\047/, "0", line)
      gsub(/\/\*[^*]*(\*[^\/*][^*]*)*\*\//, " ", line); sub(/\/\/.*/, "", line)
      if (sub(/\/\*.*/, "", line)) comment = 1
      if (continued || line ~ /^#/) { continued = line ~ /\\$/; next }
      n = length(line)
      for (i = 1; i <= n; i++) {
          c = substr(line, i, 1)
          if (c == "{") { if (depth++ == 0) { opened(text); before = text; text = "" } }
          else if (c == "}") {
              type = before ~ /(^|[ \t])(typedef|struct|enum|union)/ && before !~ /\)/
              if (--depth == 0) text = type ? "} " : ""
          }
          else if (depth == 0) {
              if (c == ";") {
                  if (text ~ /^} / && before ~ /typedef/) typename(text)
                  else if (text ~ /^[ \t]*typedef/) shortname(text)
                  text = ""
              }
              else text = text c
          }
      }
      if (depth == 0) text = text " "
    }
    function opened(t,    a) {
        if (match(t, /(struct|union|enum)[ \t]+[A-Za-z_][A-Za-z0-9_]*[ \t]*$/)) {
            a = substr(t, RSTART, RLENGTH)
            sub(/^[a-z]+[ \t]+/, "", a); gsub(/[ \t]/, "", a); emit(a); return }
        if (t ~ /=[ \t]*$/) return
        if (t ~ /^[ \t]*(typedef )?(static )?(const )?(struct|union|enum)[ \t]*$/) return
        attr = "(__attribute__|__asm__|[A-Z_]+)[ \t]*\\(\\(?[^()]*(\\([^()]*\\))?[^()]*\\)\\)?"
        if (match(t, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
            while (match(t, attr)) t = substr(t, 1, RSTART - 1) substr(t, RSTART + RLENGTH)
            if (match(t, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
                a = substr(t, RSTART, RLENGTH); sub(/[ \t]*\($/, "", a); emit(a) } }
    }
    function typename(t,    a) {
        sub(/^} */, "", t); gsub(/(ALIGNED|__attribute__) *\([^)]*\)*/, "", t); gsub(/[ \t]/, "", t)
        if (t ~ /^[A-Za-z_][A-Za-z0-9_]*$/) emit(t)
    }
    function shortname(t,    a) { # typedef int a; typedef int a(void); typedef int (*a)(void);
        if (match(t, /\(\*[ \t]*[A-Za-z_][A-Za-z0-9_]*\)/)) a = substr(t, RSTART + 2, RLENGTH - 3)
        else if (match(t, /[A-Za-z_][A-Za-z0-9_]*[ \t]*(\(|\[|$)/)) a = substr(t, RSTART, RLENGTH)
        gsub(/[^A-Za-z0-9_]/, "", a)
        if (t !~ "(struct|union|enum)[ \t]+" a "[ \t]+" a "$") emit(a) # the name of a tag
    }' "$@"
}
definitions $(find src -name '*.[ch]' ! -path '*/program/*' | sort) >"$WORK/all"
n=$(wc -l <"$WORK/all")
[ "$n" -gt 1500 ] || { echo "only $n definitions were found"; exit 1; }
awk '{ file = $2
       sub(/:.*/, "", file)
       sub(/^src\/arch\/[a-z0-9_]+\//, "src/arch/*/", file)
       sub(/^src\/os\/[a-z]+\//, "src/os/*/", file)
       if (!($1 in home)) { home[$1] = file; first[$1] = $2 }
       else if (home[$1] != file) {
           print $2 ": " $1 " is defined at " first[$1] ", too"
           wrong = 1
       } }
     END { exit wrong }' "$WORK/all"
