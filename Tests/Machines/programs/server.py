#!/usr/bin/python3
"""server.py PORT [MB]: answers with its process, the number of requests, and whether its memory is what it was."""
import http.server
import os
import sys
import zlib

port, size = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 2
heap = [b"%d " % (port * i) * 40 for i in range(int(size * 2500))]


def digest():
    value = 0
    for part in heap:
        value = zlib.crc32(part, value)
    return value


first, count = digest(), 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global count
        count += 1
        body = f"{os.getpid()} {count} {'intact' if digest() == first else 'CHANGED'}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *rest):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


Server(("127.0.0.1", port), Handler).serve_forever()
