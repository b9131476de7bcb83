/*
 * The line of a source file that an address comes from.
 *
 * libbacktrace and elfutils read line tables, too. libbacktrace takes the loader's lock to learn
 * what is loaded, allocates for each unit, and maps the file; elfutils builds on malloc throughout.
 * Neither may run in a handler that has interrupted malloc or dlopen, and both are one more thing
 * to install. What a dump needs is a small part of them: the unwinder has its own list of modules
 * (modules.c), and from an address to a line it is linetable.c.
 *
 * As with names (symbols.c), sections are copied and not mapped: a file that is overwritten while
 * the program runs must not turn a dump into a SIGBUS. The first lookup in a module reads them, on
 * the thread that wins the CAS; a thread that comes meanwhile gets no line. The release store
 * publishes the table, which never changes again.
 *
 * The file is the module's own or, where that has been stripped, the one that distributions install
 * under its build ID. The name in .gnu_debuglink is not followed: to trust it, all of the file
 * would have to be summed. Debug files are compressed with zlib, which inflate.c expands. With
 * zstd, which is no compiler's default, there are no lines.
 *
 * A file is shown without its directories: how a path is recorded depends on the directory that the
 * compiler was called in, and the function and the module beside it tell files of one name apart.
 */
#include "unwind/line.h"
#include "base/atomic.h"
#include "os/os.h"
#include "runtime.h"
#include "unwind/elffile.h"
#include "unwind/inflate.h"
#include "unwind/sort.h"

#include <sys/syscall.h>

const char *line_debug_dir = "/usr/lib/debug";

enum { DEBUG_LINE, DEBUG_LINE_STR, DEBUG_STR, BUILD_ID, WANTED };
static const char *const wanted[WANTED] = {".debug_line", ".debug_line_str", ".debug_str",
                                           ".note.gnu.build-id"};

static LineTable no_lines; /* for a module that is being read, and one that has none */

typedef struct ElfFile {
    int fd;
    Elf64_Ehdr eh;
    Elf64_Shdr section[WANTED]; /* sh_size 0: it is not there */
} ElfFile;

static void note_section(ElfFile *f, const Elf64_Shdr *sh, const char *name) {
    bool usable = sh->sh_type != SHT_NOBITS;
    for (int i = 0; i < WANTED; i++)
        if (usable && strcmp(name, wanted[i]) == 0) f->section[i] = *sh;
}

static bool section_header(const ElfFile *f, uint32_t i, Elf64_Shdr *sh) {
    return i < f->eh.e_shnum && read_at(f->fd, sh, sizeof *sh, f->eh.e_shoff + i * sizeof *sh);
}

static bool find_sections(ElfFile *f) {
    Elf64_Shdr names, sh;
    Elf64_Ehdr *eh = &f->eh;
    if (!read_at(f->fd, eh, sizeof *eh, 0) || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
        eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_shentsize != sizeof sh ||
        !section_header(f, eh->e_shstrndx, &names))
        return false;
    const char *text = read_section(f->fd, &names);
    if (text == NULL) return false;
    for (uint32_t i = 0; section_header(f, i, &sh); i++)
        if (sh.sh_name < names.sh_size) note_section(f, &sh, text + sh.sh_name);
    os_unmap((void *)text, names.sh_size + 1);
    return true;
}

static const uint8_t nothing[1];

/* The section behind its header, expanded, with a zero byte behind it as read_section has it. */
static uint8_t *expanded(const uint8_t *at, uint64_t length, uint64_t *size) {
    Elf64_Chdr head;
    if (length < sizeof head) return NULL;
    memcpy(&head, at, sizeof head);
    *size = head.ch_size;
    if (head.ch_type != ELFCOMPRESS_ZLIB || *size == 0 || *size > SECTION_MAX) return NULL;
    uint8_t *to = os_map(*size + 1, false);
    if (to && inflate_zlib(at + sizeof head, length - sizeof head, to, *size)) return to;
    if (to) os_unmap(to, *size + 1);
    return NULL;
}

static Bytes copy_of(const ElfFile *f, int which) {
    const Elf64_Shdr *sh = &f->section[which];
    uint64_t size = sh->sh_size;
    uint8_t *at = read_section(f->fd, sh), *raw = at;
    if (raw && (sh->sh_flags & SHF_COMPRESSED)) {
        at = expanded(raw, sh->sh_size, &size);
        os_unmap(raw, sh->sh_size + 1);
    }
    return at ? (Bytes){at, at + size, false} : (Bytes){nothing, nothing, false};
}

static void drop_copy(const Bytes *b) {
    if (b->at != nothing) os_unmap((void *)b->at, bytes_left(b) + 1);
}

static bool take_sections(const ElfFile *f, LineTable *t) {
    uint64_t size = f->section[DEBUG_LINE].sh_size;
    if (size == 0 || size > LINETABLE_MAX) return false;
    t->line = copy_of(f, DEBUG_LINE);
    t->line_str = copy_of(f, DEBUG_LINE_STR);
    t->str = copy_of(f, DEBUG_STR);
    return true;
}

/* The path of the debug file: DIR/.build-id/ab/cdef....debug. False: f has no build ID. */
static bool separate_path(const ElfFile *f, char *path, size_t size) {
    struct {
        Elf64_Nhdr head;
        char name[4];
        uint8_t id[32];
    } note;
    uint64_t length = f->section[BUILD_ID].sh_size;
    if (length < offsetof(__typeof__(note), id[2]) || length > sizeof note ||
        !read_at(f->fd, &note, length, f->section[BUILD_ID].sh_offset) || note.head.n_namesz != 4 ||
        note.head.n_descsz != length - offsetof(__typeof__(note), id))
        return false;
    Out o = {.fd = -1, .size = (uint32_t)size - 1, .buf = path};
    out_fmt(&o, "%s/.build-id/%02x/", line_debug_dir, note.id[0]);
    for (uint32_t i = 1; i < note.head.n_descsz; i++) out_fmt(&o, "%02x", note.id[i]);
    out_str(&o, ".debug");
    path[o.used] = 0;
    return true;
}

static bool read_separate(const ElfFile *f, LineTable *t) {
    char path[256];
    if (!separate_path(f, path, sizeof path)) return false;
    ElfFile debug = {.fd = os_open_beyond(path)};
    if (debug.fd < 0) return false;
    bool ok = find_sections(&debug) && take_sections(&debug, t);
    os_sys(SYS_close, debug.fd, 0, 0, 0, 0, 0);
    return ok;
}

static bool read_lines(const Module *mod, LineTable *t, bool *later) {
    ElfFile f = {.fd = module_open(mod)};
    *later = open_later(f.fd);
    if (f.fd < 0) return false;
    bool ok = find_sections(&f) && (take_sections(&f, t) || read_separate(&f, t));
    os_sys(SYS_close, f.fd, 0, 0, 0, 0, 0);
    return ok;
}

/* The table with its index behind it, in one piece. */
LineTable *lines_read(const Module *mod, bool *later) {
    LineTable t = {.lo = mod->lo - mod->bias, .hi = mod->hi - mod->bias};
    if (t.lo == 0) t.lo = 1; /* there the file's own header is mapped, and no code */
    if (!read_lines(mod, &t, later)) return NULL;
    t.count = linetable_index(&t, NULL, UINT32_MAX);
    LineTable *kept = t.count ? os_map(sizeof t + t.count * sizeof *t.chunks, false) : NULL;
    if (kept == NULL) {
        drop_copy(&t.line);
        drop_copy(&t.line_str);
        drop_copy(&t.str);
        return NULL;
    }
    t.chunks = (LineChunk *)(kept + 1);
    linetable_index(&t, t.chunks, t.count);
    sort_records(t.chunks, t.count, sizeof *t.chunks);
    *kept = t;
    return kept;
}

/* No other thread finishes the table, so its reader must not be stopped for good meanwhile. */
static const LineTable *lines_of(Module *mod) {
    LineTable *t = load_acq(&mod->lines), *unread = NULL;
    if (t) return t;
    bool later;
    M *m = steady_begin();
    if (cas_acq(&mod->lines, &unread, &no_lines)) {
        t = lines_read(mod, &later);
        if (t || later) store_rel(&mod->lines, t); /* pairs with the acquire: it is complete */
    }
    steady_end(m);
    return t ? t : &no_lines;
}

Line line_of(uintptr_t pc) {
    Module *mod = module_of(pc);
    return mod ? linetable_search(lines_of(mod), pc - mod->bias) : (Line){NULL, 0};
}

void line_print(Out *o, uintptr_t pc, const char *before, const char *after) {
    Line at = line_of(pc);
    if (at.file) out_fmt(o, "%s%s:%u%s", before, at.file, at.line, after);
}
