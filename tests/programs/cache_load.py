# A load for memcached or redis: connections at once, values that are looked at, a number that all
# count up. Arguments: which, the port, how many connections.
import socket
import sys
import threading

which, port, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rounds, failed = 30, []


class Memcached:
    def __init__(self):
        self.file = socket.create_connection(('127.0.0.1', port)).makefile('rwb')

    def ask(self, *words):
        self.file.write(b' '.join(words) + b'\r\n')
        self.file.flush()
        return self.file.readline().rstrip()

    def set(self, key, value):
        assert self.ask(b'set', key, b'0 0 %d\r\n' % len(value) + value) == b'STORED'

    def get(self, key):
        assert self.ask(b'get', key).startswith(b'VALUE ')
        value = self.file.readline()[:-2]
        assert self.file.readline() == b'END\r\n'
        return value

    def count(self):
        return int(self.ask(b'incr number 1'))


class Redis(Memcached):
    def call(self, *words):
        strings = b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)
        self.file.write(b'*%d\r\n' % len(words) + strings)
        self.file.flush()
        line = self.file.readline().rstrip()
        if line.startswith(b'$'):
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line

    def set(self, key, value):
        assert self.call(b'SET', key, value) == b'+OK'

    def get(self, key):
        return self.call(b'GET', key)

    def count(self):
        return int(self.call(b'INCR', b'number')[1:])


Cache = {'memcached': Memcached, 'redis': Redis}[which]
together = threading.Barrier(many)


def client(i):
    try:
        cache = Cache()
        together.wait()
        for k in range(rounds):
            key, value = b'key:%d:%d' % (i, k % 5), b'%d-%d ' % (i, k) * (1 + k * 37 % 500)
            cache.set(key, value)
            assert cache.get(key) == value
            assert cache.count() <= many * rounds
    except Exception as e:
        failed.append(repr(e))
        together.abort()


Cache().set(b'number', b'0')
threads = [threading.Thread(target=client, args=(i,)) for i in range(many)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if failed or Cache().count() != many * rounds + 1:
    sys.exit(f'{len(failed)} clients failed: {failed[:3]}; counted {Cache().count()}')
print(f'{many} clients, {2 * many * rounds} answers right')
