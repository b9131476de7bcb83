# A load for a name server that knows h0 to h199 of test.example, each hN as 10.0.0.N: clients at
# once, by UDP and by TCP, every answer checked. Arguments: the port, how many clients of each.
import random
import socket
import struct
import sys
import threading

port, many = int(sys.argv[1]), int(sys.argv[2])
rounds, failed = 50, []


def query(name):
    labels = b''.join(bytes([len(part)]) + part.encode() for part in name.split('.'))
    head = struct.pack('>6H', random.randrange(1 << 16), 0x100, 1, 0, 0, 0)
    return head + labels + b'\0' + struct.pack('>2H', 1, 1)


def check(asked, answer, n):
    assert answer[:2] == asked[:2] and answer[3] & 15 == 0, answer[:12]
    assert answer.endswith(bytes([10, 0, 0, n])), answer


def by_udp(me):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(('127.0.0.1', port))
    s.settimeout(60)
    for i in range(rounds):
        n = (me * 37 + i) % 200
        asked = query('h%d.test.example' % n)
        s.send(asked)
        check(asked, s.recv(4096), n)


def by_tcp(me):
    s = socket.create_connection(('127.0.0.1', port), 60)
    file = s.makefile('rwb')
    for i in range(rounds):
        n = (me * 37 + i) % 200
        asked = query('h%d.test.example' % n)
        file.write(struct.pack('>H', len(asked)) + asked)
        file.flush()
        check(asked, file.read(struct.unpack('>H', file.read(2))[0]), n)


def life(way, me):
    try:
        way(me)
    except Exception as e:
        failed.append('%s %d: %r' % (way.__name__, me, e))


ways = [(way, i) for way in (by_udp, by_tcp) for i in range(many)]
threads = [threading.Thread(target=life, args=way) for way in ways]
for t in threads:
    t.start()
for t in threads:
    t.join()
if failed:
    sys.exit('%d of %d: %s' % (len(failed), len(threads), failed[0]))
print('%d answers' % (len(threads) * rounds))
