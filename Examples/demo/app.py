#!/usr/bin/env python3
"""An ordinary little web app that keeps everything in memory, and knows nothing of Dormouse.

  app.py NAME --port N [--megabytes N] [--cache-mb N]

GET /          says hello, and how often it has done so
GET /digest    SHA-256 over all that it holds
GET /grow?mb=N needs N megabytes more

Like many servers, it drops its cache on SIGUSR1."""
import argparse
import ctypes
import gc
import hashlib
import random
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class App:
    def __init__(self, name, megabytes, cache_megabytes):
        chance = random.Random(name)
        self.name = name
        self.visits = 0
        self.pages = {
            f"{name}-{n}": {"title": f"{name} {chance.getrandbits(40)}",
                            "text": f"entry {chance.getrandbits(64)} " * chance.randrange(20, 40),
                            "read": chance.random() < 0.5}
            for n in range(megabytes * 950)}
        self.cache = [megabyte(chance) for _ in range(cache_megabytes)]
        self.more = []

    def hello(self):
        self.visits += 1
        return f"{self.name}: visit {self.visits}"

    def digest(self):
        sha = hashlib.sha256()
        for key, page in self.pages.items():
            sha.update(f"{key}{page['title']}{page['text']}{page['read']}".encode())
        return sha.hexdigest()

    def grow(self, megabytes):
        self.more += [megabyte(random) for _ in range(megabytes)]
        return f"{self.name}: {len(self.more)} MB more"

    def shed(self):
        self.cache = []
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # hands what is free back to the kernel


def megabyte(chance):
    return bytearray(chance.getrandbits(8 * 1024).to_bytes(1024, "little") * 1024)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        app, url = self.server.app, urlsplit(self.path)
        if url.path == "/digest":
            text = app.digest()
        elif url.path == "/grow":
            text = app.grow(int(parse_qs(url.query)["mb"][0]))
        else:
            text = app.hello()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--megabytes", type=int, default=2)
    parser.add_argument("--cache-mb", type=int, default=0)
    options = parser.parse_args()
    app = App(options.name, options.megabytes, options.cache_mb)
    signal.signal(signal.SIGUSR1, lambda number, frame: app.shed())
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.app = app
    print(f"ready on port {options.port}", flush=True)
    server.serve_forever(poll_interval=None)


if __name__ == "__main__":
    main()
