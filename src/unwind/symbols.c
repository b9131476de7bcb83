/*
 * Names for addresses.
 *
 * backtrace_symbols and dladdr allocate, take the loader's lock and know exported names only; a
 * dump runs in signal handlers and names static functions too. So the symbol table is read from the
 * file itself, with bare system calls: .symtab if there is one, else .dynsym. It is copied, not
 * mapped: a file that is overwritten while the program runs must not turn a dump into a SIGBUS.
 * What is read is checked against the file's own sizes; a broken file gives no names.
 *
 * The first lookup in a module reads its table, on the thread that wins the CAS on its state. A
 * thread that comes meanwhile waits for it; a handler on the same thread prints the bare address.
 * The release store of READY publishes the table, which never changes again.
 */
#include "unwind/symbols.h"
#include "base/atomic.h"
#include "base/san.h"
#include "os/os.h"
#include "runtime.h"
#include "unwind/elffile.h"
#include "unwind/line.h"
#include "unwind/sort.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>

enum { UNREAD, READING, READY, NONE };

bool read_at(int fd, void *to, size_t n, uint64_t offset) {
    for (size_t done = 0; done < n;) {
        long r = os_sys(SYS_pread64, fd, (long)((char *)to + done), (long)(n - done),
                        (long)(offset + done), 0, 0);
        if (r == -EINTR) continue;
        if (r <= 0) return false;
        done += (size_t)r;
    }
    return true;
}

void *read_section(int fd, const Elf64_Shdr *sh) {
    if (sh->sh_size == 0 || sh->sh_size > SECTION_MAX) return NULL;
    void *at = os_map(sh->sh_size + 1, false); /* a zero byte ends the last string */
    if (at == NULL || read_at(fd, at, sh->sh_size, sh->sh_offset)) return at;
    os_unmap(at, sh->sh_size + 1);
    return NULL;
}

static bool find_tables(int fd, Elf64_Shdr *symbols, Elf64_Shdr *strings) {
    Elf64_Ehdr eh;
    Elf64_Shdr sh;
    bool found = false;
    if (!read_at(fd, &eh, sizeof eh, 0) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
        eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_shentsize != sizeof sh)
        return false;
    for (uint32_t i = 0; i < eh.e_shnum; i++) {
        if (!read_at(fd, &sh, sizeof sh, eh.e_shoff + i * sizeof sh)) return false;
        if (sh.sh_type == SHT_SYMTAB || (sh.sh_type == SHT_DYNSYM && !found)) {
            *symbols = sh;
            found = true;
        }
    }
    return found && symbols->sh_entsize == sizeof(Elf64_Sym) && symbols->sh_link < eh.e_shnum &&
           read_at(fd, strings, sizeof *strings, eh.e_shoff + symbols->sh_link * sizeof sh);
}

/* On some machines `$x` and the like mark code and data: no names. */
static bool symbol_is_function(const Elf64_Sym *s, const char *strings, uint64_t strings_size) {
    int type = ELF64_ST_TYPE(s->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE && s->st_value != 0 &&
           s->st_name != 0 && s->st_name < strings_size && strings[s->st_name] != '$';
}

static uint32_t pick_functions(const Module *mod, const Elf64_Sym *from, uint64_t n, Symbol *to) {
    uint32_t k = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!symbol_is_function(&from[i], mod->strings, mod->strings_size)) continue;
        if (to) {
            uint64_t size = from[i].st_size;
            to[k] = (Symbol){from[i].st_value, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
                             from[i].st_name};
        }
        k++;
    }
    return k;
}

/* A part of a public call, which the library or the compiler has set apart (gort_chan_recv.waits,
 * gort_close.cold), has the name of the call, which the program has made. The table is a copy. */
static void name_calls(Module *mod) {
    for (uint32_t i = 0; i < mod->count; i++) {
        char *name = mod->strings + mod->symbols[i].name, *suffix = strchr(name, '.');
        if (suffix && begins_with(name, "gort_")) *suffix = 0;
    }
}

static bool symbols_build(Module *mod, const Elf64_Sym *raw, uint64_t n) {
    mod->count = pick_functions(mod, raw, n, NULL);
    if (mod->count == 0) return false;
    mod->symbols = os_map(mod->count * sizeof(Symbol), false);
    if (mod->symbols == NULL) return false;
    pick_functions(mod, raw, n, mod->symbols);
    sort_records(mod->symbols, mod->count, sizeof(Symbol));
    name_calls(mod);
    return true;
}

static bool read_symbols(Module *mod, int fd) {
    Elf64_Shdr symbols, strings;
    if (!find_tables(fd, &symbols, &strings)) return false;
    Elf64_Sym *raw = read_section(fd, &symbols);
    if (raw == NULL) return false;
    mod->strings = read_section(fd, &strings);
    mod->strings_size = strings.sh_size;
    bool ok = mod->strings && symbols_build(mod, raw, symbols.sh_size / sizeof *raw);
    os_unmap(raw, symbols.sh_size + 1);
    return ok;
}

/* Is the file that which was mapped? An upgrade replaces libraries under a program that runs, and a
 * relative path leads elsewhere after chdir. The first bytes tell: they have the headers, which say
 * where all is, and the build ID. What is unmapped by now is believed. */
static bool is_mapped_file(int fd, const Module *mod) {
    char file[256], memory[256];
    for (uintptr_t at = 0; at < 1024; at += sizeof file) {
        if (!read_memory(mod->lo + at, memory, sizeof memory)) return true;
        if (at == 0 && memcmp(memory, ELFMAG, SELFMAG) != 0) return true; /* not the beginning */
        if (!read_at(fd, file, sizeof file, at) || memcmp(file, memory, sizeof file) != 0)
            return false;
    }
    return true;
}

/* The executable is opened through /proc: there it is what runs, whatever has its name now. */
int module_open(const Module *mod) {
    if (mod == module_at(0)) return os_open_beyond("/proc/self/exe");
    int fd = os_open_beyond(mod->path);
    if (fd < 0 || is_mapped_file(fd, mod)) return fd;
    os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    return -ENOENT;
}

bool open_later(int fd) { return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM; }

/* The table's next state. */
static uint32_t read_module(Module *mod) {
    int fd = module_open(mod);
    if (fd < 0) return open_later(fd) ? UNREAD : NONE;
    bool ok = read_symbols(mod, fd);
    os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    return ok ? READY : NONE;
}

/* Another thread reads the table: it takes milliseconds. Not where this is a handler, or a report,
 * that came into the middle of the reading. A reader may have lost its processor, or crashed. */
#define AWAIT_NAP (100 * GORT_US)
#define AWAIT_NAPS 10000
static uint32_t await_reader(Module *mod) {
    uint32_t state = load_acq(&mod->state);
    for (int i = 0; i < AWAIT_NAPS && state == READING; i++) {
        if (load_rlx(&mod->reader) == (uint32_t)os_gettid()) break;
        os_nap(AWAIT_NAP);
        state = load_acq(&mod->state);
    }
    return state;
}

/* No other thread finishes the table, so its reader must not be stopped for good meanwhile. */
static bool ensure_symbols(Module *mod) {
    uint32_t state = load_acq(&mod->state);
    if (state == UNREAD) {
        M *m = steady_begin();
        if (cas_acq(&mod->state, &state, READING)) {
            store_rlx(&mod->reader, (uint32_t)os_gettid());
            state = read_module(mod);
            tsan_release(mod);
            store_rel(&mod->state, state); /* pairs with the acquire above: the table is complete */
        }
        steady_end(m);
    }
    if (unlikely(state == READING)) state = await_reader(mod);
    if (state != READY) return false;
    tsan_acquire(mod);
    return true;
}

/* The last symbol at or below v. */
static const Symbol *symbol_search(const Module *mod, uint64_t v) {
    uint32_t lo = 0, hi = mod->count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (mod->symbols[mid].value <= v) lo = mid + 1;
        else hi = mid;
    }
    return lo > 0 ? &mod->symbols[lo - 1] : NULL;
}

Named symbol_of(uintptr_t pc) {
    Module *mod = module_of(pc);
    Named n = {.module = mod};
    if (mod == NULL) return n;
    n.offset = pc - mod->bias;
    if (!ensure_symbols(mod)) return n;
    const Symbol *s = symbol_search(mod, pc - mod->bias);
    /* Several names may stand at one address, with and without a size, in any order: take any that
     * covers pc. A name without a size (assembler) extends to the next one. */
    for (int back = 0; s && back < 8 && s >= mod->symbols; back++, s--) {
        uint64_t offset = pc - mod->bias - s->value;
        if (s->size ? offset >= s->size : back > 0) continue;
        n.name = mod->strings + s->name;
        n.offset = offset;
        n.size = s->size;
        return n;
    }
    return n;
}

/* ---- C++ ------------------------------------------------------------------------------------- */

/* of the C++ library, if the program has one */
extern char *__cxa_demangle(const char *name, char *to, size_t *size, int *status)
    __attribute__((weak));

#define MANGLED_MOST 400 /* bytes: what the demangler needs of the stack grows with them */

const char *symbol_shown(const char *name, char room[SYMBOL_SHOWN]) {
    if (&__cxa_demangle == NULL || !begins_with(name, "_Z") || strlen(name) > MANGLED_MOST)
        return name;
    char *text = __cxa_demangle(name, NULL, NULL, NULL);
    size_t n = text ? strlen(text) : 0;
    if (text) memcpy(room, text, n < SYMBOL_SHOWN ? n + 1 : SYMBOL_SHOWN);
    if (n >= SYMBOL_SHOWN) strcpy(room + SYMBOL_SHOWN - 4, "...");
    free(text);
    return text ? room : name;
}

/* Apart: dumps are printed on small stacks, too. */
NOINLINE static void out_shown(Out *o, const char *name) {
    char room[SYMBOL_SHOWN];
    out_str(o, symbol_shown(name, room));
}
void symbol_name_print(Out *o, const char *name) {
    if (o->more) out_shown(o, name);
    else out_str(o, name);
}

/* ---- print ----------------------------------------------------------------------------------- */

static void print_symbol(Out *o, uintptr_t pc, bool with_line) {
    Named n = symbol_of(pc);
    if (n.name) {
        symbol_name_print(o, n.name);
        out_fmt(o, "+0x%lx", n.offset);
    }
    if (with_line) line_print(o, pc, n.name ? " " : "", n.name ? "" : " ");
    if (n.name) out_fmt(o, " (%s)", module_name(n.module));
    else if (n.module) out_fmt(o, "(%s+0x%lx)", module_name(n.module), n.offset);
    else out_str(o, "?");
}

void symbol_print(Out *o, uintptr_t pc) { print_symbol(o, pc, true); }
void symbol_print_bare(Out *o, uintptr_t pc) { print_symbol(o, pc, false); }
