"""server.py PORT [ADDRESS]: a server that keeps a count and 20 MB, and answers each GET with the count and a digest of the memory.
At SIGTERM it prints both and ends."""
import hashlib
import os
import random
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

random.seed(7)
memory = bytearray(random.randbytes(20 << 20))
count = 0


def line():
    return f"{count} {hashlib.sha256(memory).hexdigest()[:8]}"


def end(number, frame):
    print("ended", line(), flush=True)
    os._exit(0)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global count
        if self.path != "/probe":
            count += 1
        answer = line().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


signal.signal(signal.SIGTERM, end)
server = ThreadingHTTPServer(((sys.argv + ["127.0.0.1"])[2], int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
