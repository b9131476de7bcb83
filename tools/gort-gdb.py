"""gdb commands for programs that use gort, live or on a core file.

    info goroutines [WORD]       all goroutines, or those with WORD in their line
    goroutine N bt               the frames of goroutine N
    goroutine N COMMAND          any command that looks, in N's innermost frame outside of gort:
                                 goroutine 7 info locals, goroutine 7 print *request
    goroutine N frame K [COMMAND]  the same in frame K, as `goroutine N bt` counts them
    goroutine all ...            each of these for all goroutines

gdb loads it by itself where its safe path allows: a program with libgort.a in it names the script
in its section .debug_gdb_scripts, and libgort.so has one of its own name in gdb's auto-load
directory. Else: `source tools/gort-gdb.py`, or the installed share/gort/gort-gdb.py. The library
must be built with -g, which is the default.

How a parked goroutine is unwound: gdb knows the registers of threads only, and on a core file
they cannot be changed. So an unwinder of our own tells gdb that the selected thread's innermost
frame was called from the goroutine's saved context; from there gdb unwinds as usual. The command
walks these frames, prints all but the first, and switches the unwinder off again. A command that
looks (info locals, print, x) runs while the unwinder is on, in one of these frames.
"""

import re
import struct

import gdb
from gdb.unwinder import Unwinder

STATUS = {0: "idle", 1: "runnable", 2: "running", 3: "syscall", 4: "waiting", 6: "dead"}
REASONS = [
    "waiting", "chan receive", "chan send", "chan receive (nil chan)", "chan send (nil chan)",
    "select", "select (no cases)", "sleep", "sync.Mutex.Lock", "sync.RWMutex.RLock",
    "sync.RWMutex.Lock", "sync.WaitGroup.Wait", "sync.Cond.Wait", "semacquire", "IO wait",
    "syscall", "file IO", "stop the world",
]
GF_NAMED = 2
# What arch_switch leaves at a saved sp (src/arch/*/arch.h): the place of each register and the
# size, in words; then the names of the stack pointer and the program counter.
SAVED = {
    "i386:x86-64": ({"rip": 1, "rbp": 2}, 3, "rsp", "rip"),
}


def evaluate(text):
    try:
        return gdb.parse_and_eval(text)
    except gdb.error:
        return None


def static(file, name):
    """A static variable of the library, wherever it was compiled."""
    for place in ("'src/%s'::%s" % (file, name), "'%s'::%s" % (file, name), name):
        value = evaluate(place)
        if value is not None and value.type.code != gdb.TYPE_CODE_ERROR:
            return value
    raise gdb.GdbError("no gort in this program, or it was built without -g")


# The program may have structs named M, G and Stack. So the first two are reached from a variable,
# and the third, of which that has the name only, is looked up where the library defines it.
def thread_type():
    return static("runtime.c", "sched")["all_ms"].type


def stack_type():
    place = int(static("mem/stack.c", "stack_record").address)
    return gdb.lookup_type("struct Stack", gdb.block_for_pc(place))


def field_type(pointer, name):
    return next(f.type for f in pointer.target().strip_typedefs().fields() if f.name == name)


def goroutine_type():
    return field_type(thread_type(), "curg")


class Layout:
    """Offsets of the fields of a G: regions are read in one piece."""

    def __init__(self):
        self.type = goroutine_type().target().strip_typedefs()
        self.size = self.type.sizeof
        self.at = {f.name: (f.bitpos // 8, f.type.sizeof) for f in self.type.fields()}

    def get(self, data, base, name):
        offset, size = self.at[name]
        form = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}[size]
        return struct.unpack_from(form, data, base + offset)[0]


class Goroutine:
    def __init__(self, layout, data, base, address):
        get = lambda name: layout.get(data, base, name)
        self.address = address
        self.id, self.status, self.reason = get("id"), get("status"), get("reason")
        self.sp, self.fn, self.m, self.home = get("sp"), get("fn"), get("m"), get("home")
        self.flags, self.stack, self.created = get("flags"), get("stack"), get("created_at")

    def status_text(self):
        if self.status == 4 and self.reason < len(REASONS):
            return REASONS[self.reason]
        return STATUS.get(self.status, str(self.status))

    def name(self):
        if not self.flags & GF_NAMED or not self.stack:
            return ""
        stack = gdb.Value(self.stack).cast(stack_type().pointer())
        try:
            return stack["name"].string(errors="replace")
        except gdb.error:
            return ""

    def thread(self):
        """The thread with its registers: it runs there, or was preempted there by signal."""
        if self.status in (2, 3):
            return thread_of(self.m)
        if self.status == 1 and self.home:
            m = m_at(self.home)
            if int(m["in_handler"]) and int(m["curg"]) == self.address:
                return thread_of(self.home)
        return None

    def line(self):
        name = ' "%s"' % self.name() if self.name() else ""
        return "%-7d %-24s %s%s" % (self.id, self.status_text(), function_at(self.fn), name)


def m_at(address):
    return gdb.Value(address).cast(thread_type())


def thread_of(m):
    if not m:
        return None
    tid = int(m_at(m)["tid"])
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == tid:
            return thread
    return None


def function_at(pc):
    text = gdb.execute("info symbol 0x%x" % pc, to_string=True).strip()
    return text.split(" in section")[0].split(" + ")[0] if "in section" in text else "0x%x" % pc


def goroutines():
    gs = static("sched/g.c", "gs")
    layout, inferior = Layout(), gdb.selected_inferior()
    regions, carved = int(gs["regions"]), int(gs["carved"])
    found = []
    for i in range(regions):
        region = int(gs["region"][i])
        count = carved if i == regions - 1 else (2 << 20) // layout.size
        data = bytes(inferior.read_memory(region, count * layout.size)) if count else b""
        for k in range(count):
            base = k * layout.size
            if layout.get(data, base, "id") and layout.get(data, base, "status") not in (0, 6):
                found.append(Goroutine(layout, data, base, region + base))
    return sorted(found, key=lambda g: g.id)


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Switched(Unwinder):
    """While `to` is set: the innermost frame of the thread was called from the saved context."""

    def __init__(self):
        super().__init__("gort goroutine")
        self.to = None
        self.innermost = None

    def __call__(self, pending):
        if self.to is None:
            return None
        registers, words, sp_name, pc_name = self.to[1]
        sp, pc = int(pending.read_register(sp_name)), int(pending.read_register(pc_name))
        if self.innermost is None:
            self.innermost = (sp, pc)
        if (sp, pc) != self.innermost:
            return None
        word = gdb.lookup_type("unsigned long")
        saved = gdb.selected_inferior().read_memory(self.to[0], words * 8)
        frame = FrameId(gdb.Value(sp).cast(word), gdb.Value(pc).cast(word))
        info = pending.create_unwind_info(frame)
        for name, place in registers.items():
            value = struct.unpack_from("<Q", saved, place * 8)[0]
            info.add_saved_register(name, gdb.Value(value).cast(word))
        info.add_saved_register(sp_name, gdb.Value(self.to[0] + words * 8).cast(word))
        return info


switched = Switched()
gdb.unwinder.register_unwinder(None, switched, replace=True)


def print_frame(n, frame):
    name = frame.name() or "??"
    where = frame.find_sal()
    place = " at %s:%d" % (where.symtab.filename, where.line) if where.symtab else ""
    print("#%-3d 0x%016x in %s ()%s" % (n, frame.pc(), name, place))


def print_frames(frames):
    for n, frame in enumerate(frames):
        print_frame(n, frame)


def walk(frame):
    """The frames from this one outwards, 200 at most."""
    frames = []
    while frame is not None and frame.is_valid() and len(frames) < 200:
        frames.append(frame)
        try:
            frame = frame.older()
        except gdb.error as error:
            print("     (%s)" % error)
            break
    return frames


def sources():
    """The directory that the library was compiled from; None: not known."""
    for symbol in gdb.lookup_static_symbols("gs"):
        path = symbol.symtab.fullname()
        if path.endswith("/sched/g.c"):
            return path[:-len("sched/g.c")]
    return None


def passing(path, ours):
    """Is it gort's, a header of it, or one of the C++ library: what stands between a call of the
    program's and gort?"""
    return path.startswith(ours) or "/include/c++/" in path or re.search(r"/gort\.h(pp)?$", path)


def outside(frames):
    """The number of the innermost frame that is the program's."""
    ours = sources()
    for n, frame in enumerate(frames):
        symtab = frame.find_sal().symtab
        if ours is None or symtab is None or not passing(symtab.fullname(), ours):
            return n
    return 0


def in_parked(g, look):
    """Calls look with the frames of a goroutine that no thread runs."""
    layout = SAVED.get(gdb.selected_inferior().architecture().name())
    if layout is None:
        raise gdb.GdbError("parked goroutines of this processor cannot be unwound")
    if g.sp == 0:
        print("     (has not run yet)")
        return
    switched.to, switched.innermost = (g.sp, layout), None
    gdb.invalidate_cached_frames()
    try:
        look(walk(gdb.newest_frame().older()))
    finally:
        switched.to = None
        gdb.invalidate_cached_frames()


def in_goroutine(g, look):
    """Calls look with the frames of g, and leaves the selected thread and frame as they were."""
    thread, before = g.thread(), gdb.selected_thread()
    level = gdb.selected_frame().level()
    try:
        if thread is None:
            in_parked(g, look)
        else:
            thread.switch()
            look(walk(gdb.newest_frame()))
    finally:
        before.switch()
        gdb.execute("frame %d" % level, to_string=True)


def head(g):
    print("goroutine %d [%s]%s:" % (g.id, g.status_text(), ' "%s"' % g.name() if g.name() else ""))


def backtrace(g):
    head(g)
    in_goroutine(g, print_frames)
    if g.created > 1 and g.id != 1:
        print("created by %s" % function_at(g.created - 1))
    print("")


def run_in_frame(g, number, command):
    """number: as in a backtrace; None: the innermost frame outside of gort."""
    def look(frames):
        n = outside(frames) if number is None else number
        if n >= len(frames):
            raise gdb.GdbError("goroutine %d has %d frames" % (g.id, len(frames)))
        frames[n].select()
        print_frame(n, frames[n])
        if command:
            gdb.execute(command)

    head(g)
    in_goroutine(g, look)


class InfoGoroutines(gdb.Command):
    """Lists the goroutines of a program that uses gort: id, status, function and name."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        lines = [g.line() for g in goroutines()]
        chosen = [line for line in lines if argument in line]
        for line in chosen:
            print(line)
        of = " of %d" % len(lines) if argument else ""
        print("%d%s goroutines" % (len(chosen), of))


class GoroutineCommand(gdb.Command):
    """goroutine N COMMAND: runs a command that looks (bt, info locals, print ...) in goroutine N.

goroutine N bt               its frames
goroutine N COMMAND          in its innermost frame outside of gort
goroutine N frame K COMMAND  in frame K, as goroutine N bt counts them
goroutine all ...            the same for each goroutine"""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND)

    def invoke(self, argument, from_tty):
        which, _, command = argument.strip().partition(" ")
        words = command.split(None, 2)
        if not words or not (which == "all" or which.isdigit()):
            raise gdb.GdbError("usage: goroutine N bt, goroutine N info locals, goroutine all bt")
        chosen = [g for g in goroutines() if which in ("all", str(g.id))]
        if not chosen:
            raise gdb.GdbError("no goroutine %s" % which)
        for g in chosen:
            if command in ("bt", "backtrace", "where"):
                backtrace(g)
            elif words[0] in ("frame", "f") and len(words) > 1 and words[1].isdigit():
                run_in_frame(g, int(words[1]), words[2] if len(words) > 2 else "")
            else:
                run_in_frame(g, None, command)


InfoGoroutines()
GoroutineCommand()
