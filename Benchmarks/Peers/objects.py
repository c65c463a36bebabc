#!/usr/bin/env python3
"""The worker of peers.py and crowd.py: an HTTP server that holds a number of small objects.
`objects.py OBJECTS PORT [SECONDS]`; `/` touches few objects, `/all` all. With SECONDS it also touches all of them by
itself at that interval, as a garbage collector or a timer would."""
import http.server
import json
import sys
import threading
import time

OBJECTS = [{"number": n, "text": f"value {n}"} for n in range(int(sys.argv[1]))]


def total():
    return sum(one["number"] for one in OBJECTS)


def keep_house(seconds):
    while True:
        time.sleep(seconds)
        total()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = total() if self.path == "/all" else OBJECTS[-1]["number"]
        body = json.dumps([len(OBJECTS), number]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if len(sys.argv) > 3:
    threading.Thread(target=keep_house, args=[float(sys.argv[3])], daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
