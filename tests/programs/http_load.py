# A load for an HTTP server whose page is known: clients at once, half of them with a connection for
# each request, every answer checked. Arguments: the port, path, file with the page, how many.
import http.client
import sys
import threading

port, path, many = int(sys.argv[1]), sys.argv[2], int(sys.argv[4])
with open(sys.argv[3], 'rb') as f:
    page = f.read()
rounds, failed = 30, []


def life(me):
    try:
        c = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
        for _ in range(rounds):
            c.request('GET', path)
            answer = c.getresponse()
            body = answer.read()
            assert answer.status == 200 and body == page, (answer.status, body[:80])
            if me % 2:
                c.close()
    except Exception as e:
        failed.append('%d: %r' % (me, e))


threads = [threading.Thread(target=life, args=(i,)) for i in range(many)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if failed:
    sys.exit('%d of %d: %s' % (len(failed), many, failed[0]))
print('%d answers' % (many * rounds))
