/*
 * Which file does an address belong to?
 *
 * dladdr and dl_iterate_phdr take the loader's lock, and a dump may interrupt a thread inside
 * dlopen. So the list is read from where debuggers read it: the executable's program headers (from
 * the auxiliary vector), its dynamic section, and from there the loader's chain of link maps. All
 * is read with read_memory(), so a library that goes away meanwhile only ends the walk.
 *
 * The table of modules only grows; readers need no lock. A closed library leaves its entry; newer
 * entries are examined first, so another library may take over its addresses. A thread that finds
 * an address nowhere walks the list: at most ten times a second, one thread at a time. Who has to
 * know of a library that was opened this moment, and whose constructor runs, walks it each time.
 *
 * This table tells whether a goroutine stands in libc (inlibc.c), so no module may be missing: the
 * table grows by parts, and a module that finds no room in it is reported.
 */
#include "unwind/modules.h"
#include "base/atomic.h"
#include "base/warn.h"
#include "os/os.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define PART 192 /* modules of one part of the table */
#define PARTS 64
#define MODULES (PART * PARTS)

static Module first_part[PART];
static Module *parts[PARTS] = {first_part}; /* written by the walker before `used` */
static uint32_t used;                       /* atomic: entries that are complete */
static uint32_t walking;                    /* atomic: a thread walks the loader's list */
static int64_t walked_at;                   /* atomic */

const char *module_name(const Module *mod) {
    const char *slash = strrchr(mod->path, '/');
    return slash ? slash + 1 : mod->path;
}

static Module *entry(uint32_t index) { return &parts[index / PART][index % PART]; }

Module *module_at(uint32_t index) { return index < load_acq(&used) ? entry(index) : NULL; }

/* The walker only. NULL: there is no room. */
static Module *room_for(uint32_t index) {
    if (index == MODULES) return NULL;
    Module **part = &parts[index / PART];
    if (*part == NULL) *part = os_map(PART * sizeof(Module), false);
    return *part ? entry(index) : NULL;
}

static bool module_known(uintptr_t bias, const char *path) {
    for (uint32_t i = 0; i < load_rlx(&used); i++) {
        const Module *mod = entry(i);
        if (mod->bias != bias) continue;
        size_t a = strlen(mod->path), b = strlen(path);
        if (a <= b && strcmp(mod->path, path + b - a) == 0) return true;
    }
    return false;
}

/* Adds a file loaded with `bias`, whose program headers are at `at`. */
static void module_add(uintptr_t bias, uintptr_t at, uint32_t count, const char *path) {
    uint32_t n = load_rlx(&used);
    if (module_known(bias, path)) return;
    Module *mod = room_for(n);
    if (mod == NULL) {
        warn_once(WARN_MODULES,
                  "no room for the module %s: a stopped world may wait for a lock of libc's", path);
        return;
    }
    *mod = (Module){.bias = bias, .lo = UINTPTR_MAX};
    for (uint32_t i = 0; i < count && i < 64; i++) {
        Elf64_Phdr ph;
        if (!read_memory(at + i * sizeof ph, &ph, sizeof ph)) return;
        uintptr_t lo = bias + ph.p_vaddr;
        if (ph.p_type == PT_LOAD && lo < mod->lo) mod->lo = lo;
        if (ph.p_type == PT_LOAD && lo + ph.p_memsz > mod->hi) mod->hi = lo + ph.p_memsz;
        if (ph.p_type == PT_GNU_EH_FRAME) mod->eh_hdr = lo;
    }
    if (mod->hi == 0) return;
    size_t length = strlen(path), most = sizeof mod->path - 1;
    if (length > most) path += length - most; /* the end tells more than the beginning */
    memcpy(mod->path, path, strlen(path) + 1);
    store_rel(&used, n + 1); /* pairs with module_at: the entry is complete before it is seen */
}

/* The same for a file whose ELF header is mapped at `at`. */
static void module_add_mapped(uintptr_t bias, uintptr_t at, const char *path) {
    Elf64_Ehdr eh;
    if (!read_memory(at, &eh, sizeof eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0) return;
    if (eh.e_phentsize == sizeof(Elf64_Phdr)) module_add(bias, at + eh.e_phoff, eh.e_phnum, path);
}

/* PT_PHDR says where the program headers should be; a static-pie executable has none. There the ELF
 * header stands just before them, and the segment that begins with the file maps both. */
static uintptr_t bias_of_executable(uintptr_t phdr, uint32_t count, uintptr_t *dynamic) {
    uintptr_t bias = 0, dyn = 0, header = phdr - sizeof(Elf64_Ehdr);
    Elf64_Ehdr eh;
    bool headed = read_memory(header, &eh, sizeof eh) && memcmp(eh.e_ident, ELFMAG, SELFMAG) == 0 &&
                  eh.e_phoff == sizeof eh;
    for (uint32_t i = 0; i < count; i++) {
        Elf64_Phdr ph;
        if (!read_memory(phdr + i * sizeof ph, &ph, sizeof ph)) break;
        if (ph.p_type == PT_PHDR) bias = phdr - ph.p_vaddr, headed = false;
        if (ph.p_type == PT_LOAD && ph.p_offset == 0 && headed) bias = header - ph.p_vaddr;
        if (ph.p_type == PT_DYNAMIC) dyn = ph.p_vaddr;
    }
    *dynamic = dyn ? bias + dyn : 0;
    return bias;
}

/* The loader's chain of link maps, from DT_DEBUG in the executable's dynamic section. */
static uintptr_t link_maps(uintptr_t dynamic) {
    for (int i = 0; dynamic && i < 256; i++) {
        Elf64_Dyn d;
        struct r_debug r;
        if (!read_memory(dynamic + (uintptr_t)i * sizeof d, &d, sizeof d)) return 0;
        if (d.d_tag == DT_NULL) return 0;
        if (d.d_tag != DT_DEBUG) continue;
        if (!d.d_un.d_ptr || !read_memory(d.d_un.d_ptr, &r, sizeof r)) return 0;
        return (uintptr_t)r.r_map;
    }
    return 0;
}

/* Copies a string of unknown length, in pieces that lie in one page each. */
static bool read_string(uintptr_t at, char *buf, size_t size) {
    for (size_t n = 0, more; n < size; n += more) {
        more = 64 - (at + n) % 64;
        if (more > size - n) more = size - n;
        if (!read_memory(at + n, buf + n, more)) return false;
        if (memchr(buf + n, 0, more)) return true;
    }
    return false;
}

/* In the loader's chain the executable has an empty name, and that of the vDSO is no file's. */
static void modules_walk(void) {
    static char path[4096]; /* the walker only: an alternate stack is small */
    int err = errno;
    uintptr_t phdr = getauxval(AT_PHDR), dynamic = 0, vdso = getauxval(AT_SYSINFO_EHDR);
    uint32_t count = (uint32_t)getauxval(AT_PHNUM);
    errno = err; /* getauxval sets it where an entry is missing */
    uintptr_t bias = bias_of_executable(phdr, count, &dynamic);
    if (load_rlx(&used) == 0) {
        long n = os_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
                        sizeof path - 1, 0, 0);
        path[n > 0 ? n : 0] = 0;
        module_add(bias, phdr, count, n > 0 ? path : "main");
        if (vdso) module_add_mapped(vdso, vdso, "[vdso]");
    }
    uintptr_t at = link_maps(dynamic);
    for (uint32_t i = 0; at && i < MODULES; i++) {
        struct link_map lm;
        if (!read_memory(at, &lm, sizeof lm)) return;
        if (lm.l_addr != vdso && read_string((uintptr_t)lm.l_name, path, sizeof path) && path[0])
            module_add_mapped(lm.l_addr, lm.l_addr, path);
        at = (uintptr_t)lm.l_next;
    }
}

/* The walker is in a section and waits for nobody. Bounded for a child, where it is gone. */
static void walk_await(void) {
    for (int i = 0; i < 1000 && load_acq(&walking); i++) os_yield();
}

static void modules_refresh(int64_t pause) {
    int64_t now = os_now(), last = load_rlx(&walked_at);
    if (last && now - last < pause) return;
    if (xchg_acq(&walking, 1)) {
        if (pause == 0 || last == 0) walk_await();
        return;
    }
    modules_walk();
    store_rlx(&walked_at, now);
    store_rel(&walking, 0);
}

static Module *module_find(uintptr_t pc) {
    for (uint32_t i = load_acq(&used); i-- > 0;)
        if (pc >= entry(i)->lo && pc < entry(i)->hi) return entry(i);
    return NULL;
}

static Module *module_seek(uintptr_t pc, int64_t pause) {
    Module *mod = module_find(pc);
    if (mod == NULL && pc >= 4096) {
        modules_refresh(pause);
        mod = module_find(pc);
    }
    return mod;
}

Module *module_of(uintptr_t pc) { return module_seek(pc, GORT_SEC / 10); }
Module *module_of_newest(uintptr_t pc) { return module_seek(pc, 0); }
