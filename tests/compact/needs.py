"""needs.py NEEDS SPLIT_H FILE.ci...: the deepest chain below each call of NEEDS. See needs.sh."""
import re
import sys

# Where a chain leaves the goroutine's stack: it runs on g0's (call_with_room, split_slow), or does
# not come back.
ELSEWHERE = {'fatal', 'fatal_report', 'stack_get', 'overflow', 'split_overflow', 'leave_runtime',
             'run', 'sim_point', 'say',
             'park_thread', 'wake_thread', 'm_adopt', 'select_large', 'add_wait', 'spill_chunk',
             'compact_refill', 'open_with_room',
             'life_awaited',  # under the hook only, which is never beside compact stacks
             'put_shared',  # a thread without an M: on no goroutine's stack
             # no compact stacks where faults are injected:
             'sys_with_faults', 'sysfault_alloc_due'}
# Functions that finish_switch calls by pointer: they run on the stack of whoever comes next.
COMMITS = {'arm_deadline', 'bury', 'gave_way', 'unlock_and_wake', 'left', 'commit', 'commit_poll',
           'commit_put',
           'queue_returned'}
SWITCHES = {'finish_switch', 'park', 'park_commit', 'yield', 'switch_to_g0', 'goroutine_entry'}
LIBC = {'clock_gettime': 168, 'free': 448, 'arch_call_saving': 24}  # others: 64
CALL, MORESTACK = 8, 88                     # a return address; __morestack's frame
# Called last of all, by a jump, when the caller's frame is gone; needs.sh looks whether that is so.
JUMPS = {'read_slowly', 'write_slowly', 'write_rest', 'gort_recv_until', 'gort_send_until'}
DYNAMIC = {'block_small': 96 + 5 * 72}      # select with up to four cases


def short(title):
    return title.split(':')[-1].split('.')[0]


def read(files):
    size, calls = {}, {}
    for name in files:
        for line in open(name):
            node = re.match(r'node: \{ title: "([^"]+)" '
                            r'label: "[^"]*?(\d+) bytes \(([^)]+)\)', line)
            edge = re.match(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', line)
            if node:
                size[node[1]] = int(node[2])
                if node[3] == 'dynamic' and short(node[1]) not in DYNAMIC:
                    size[node[1]] = 1 << 20  # an array of variable size that nobody has thought of
                size[node[1]] = DYNAMIC.get(short(node[1]), size[node[1]])
            elif edge:
                calls.setdefault(edge[1], set()).add(edge[2])
    commits = {t for t in size if short(t) in COMMITS}
    for caller, called in calls.items():
        if '__indirect_call' in called:
            called.discard('__indirect_call')
            if short(caller) in SWITCHES:
                called |= commits
    return size, calls


def depth(title, size, calls, known, path=()):
    if short(title) in ELSEWHERE or title in path:
        return CALL, short(title)
    if title not in known:
        own = size.get(title, LIBC.get(title, 64)) + CALL
        known[title] = own, '%s(%d)' % (short(title), own)
        for called in sorted(calls.get(title, ())):  # a cycle is cut where it is met first
            mine = 0 if short(called) in JUMPS else own
            below, chain = depth(called, size, calls, known, path + (title,))
            deeper = '%s(%d) %s' % (short(title), mine, chain)
            known[title] = max(known[title], (mine + below, deeper))
    return known[title]


def main():
    needs = {}
    for line in open(sys.argv[1]):
        word = line.split('#')[0].split()
        if len(word) >= 2:
            needs[word[0]] = int(word[4] if len(word) > 4 else word[1])
    size, calls = read(sys.argv[3:])
    bad, known = 0, {}
    for name, need in sorted(needs.items()):
        n, chain = depth(name, size, calls, known)
        if n > need:
            print('%s needs %d, src/mem/split/program/needs says %d: %s' % (name, n, need, chain))
            bad += 1
    text = open(sys.argv[2]).read()
    reserve = int(re.search(r'RESERVE_SELF \(\(size_t\)(\d+)\)', text)[1])
    for name in 'gort_split_grow', 'gort_split_shrink', 'gort_split_space':
        n, chain = depth(name, size, calls, known)
        if n + MORESTACK > reserve:
            print('%s needs %d, RESERVE_SELF is %d: %s' % (name, n + MORESTACK, reserve, chain))
            bad += 1
    print('%d calls looked at' % len(needs))
    return bad > 0 or len(needs) < 40


sys.exit(main())
