#!/usr/bin/env python3
"""The worker of peers.py and crowd.py: an HTTP server that holds a number of small objects.
`objects.py OBJECTS PORT [SECONDS]`; `/` touches few objects, `/all` all, `/sum` is a checksum of all. With SECONDS it also
touches all of them by itself at that interval, as a garbage collector would; with the variable TIMER, one of them."""
import http.server
import json
import os
import sys
import threading
import time
import zlib

OBJECTS = [{"number": n, "text": f"value {n}"} for n in range(int(sys.argv[1]))]


def total():
    return sum(one["number"] for one in OBJECTS)


def checksum():
    value = 0
    for one in OBJECTS:
        value = zlib.crc32(one["text"].encode(), value)
    return value + total()


def repeat(seconds, work):
    while True:
        time.sleep(seconds)
        work()


ANSWERS = {"/all": total, "/sum": checksum}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = ANSWERS.get(self.path, lambda: OBJECTS[-1]["number"])()
        body = json.dumps([len(OBJECTS), number]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if len(sys.argv) > 3:
    threading.Thread(target=repeat, args=[float(sys.argv[3]), total], daemon=True).start()
if "TIMER" in os.environ:
    threading.Thread(target=repeat, args=[float(os.environ["TIMER"]), OBJECTS[0].copy], daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
