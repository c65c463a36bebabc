#!/usr/bin/env python3
"""An HTTP server with state in memory, as unmodified workers have it. No modules needed.

  http_state.py [--port 0] [--megabytes 8] [--cache-mb 0]     prints `ready PORT` when listening

GET  /count     counts, and answers the count
GET  /digest    SHA-256 over all state (notes and pairs, not the counter): touches every object
POST /put?k=v   stores a pair; GET /get?k returns it
GET  /grow?mb=N allocates N MB
GET  /sheds     how often the cache was shed

SIGUSR1 sheds the cache. READY=1 is sent to NOTIFY_SOCKET if that is set. If
MEMORY_PRESSURE_WATCH is set, it is watched by systemd's protocol, and each event sheds."""
import argparse
import base64
import ctypes
import gc
import hashlib
import os
import random
import select
import signal
import socket
import stat
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

WORDS = ("dormouse", "winter", "acorn", "hedge", "moon", "burrow", "frost", "clover", "hazel",
         "autumn", "nest", "bramble", "owl", "thaw", "ivy", "meadow")


def trim():
    """Returns freed memory to the kernel."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


class State:
    def __init__(self, megabytes, cache_megabytes):
        self.lock = threading.Lock()
        self.counter = 0
        self.sheds = 0
        self.pairs = {}
        self.grown = []
        self.notes = make_notes(megabytes)
        self.cache = {n: block(64 << 10, n) for n in range(cache_megabytes * 16)}

    def count(self):
        with self.lock:
            self.counter += 1
            return self.counter

    def digest(self):
        sha = hashlib.sha256()
        for key, note in self.notes.items():
            sha.update(f"{key}{note['title']}{note['body']}{note['tags']}{note['at']}".encode())
        for key, value in sorted(self.pairs.items()):
            sha.update(f"{key}={value};".encode())
        return sha.hexdigest()

    def grow(self, megabytes):
        self.grown += [block(1 << 20, n) for n in range(megabytes)]
        return f"{len(self.grown)} MB"

    def shed(self):
        self.cache = {}
        self.sheds += 1
        trim()


def make_notes(megabytes):
    """About that many megabytes of small objects: dictionaries, strings, lists, numbers."""
    chance = random.Random(42)
    corpus = " ".join(chance.choice(WORDS) + str(chance.randrange(100)) for _ in range(20000))
    notes = {}
    for n in range(megabytes * 800):
        at = chance.randrange(len(corpus) - 1200)
        notes[f"note-{n}"] = {
            "title": f"Note {n} of {chance.randrange(1 << 30)}",
            "body": corpus[at:at + chance.randrange(400, 1000)],
            "tags": [corpus[at + i:at + i + 8] for i in range(chance.randrange(3))],
            "at": chance.random(),
        }
    return notes


def block(size, seed):
    return bytearray(random.Random(seed).randbytes(512) * (size // 512))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        state, url = self.server.state, urlsplit(self.path)
        query = parse_qsl(url.query, keep_blank_values=True)
        first = query[0] if query else ("", "")
        if url.path == "/count":
            self.answer(state.count())
        elif url.path == "/digest":
            self.answer(state.digest())
        elif url.path == "/sheds":
            self.answer(state.sheds)
        elif url.path == "/get":
            self.answer(state.pairs.get(first[0], ""))
        elif url.path == "/grow" and first[1].isdigit():
            self.answer(state.grow(int(first[1])))
        else:
            self.answer("no such path", 404)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        if url.path != "/put":
            return self.answer("no such path", 404)
        self.server.state.pairs.update(parse_qsl(url.query, keep_blank_values=True))
        self.answer("kept")

    def answer(self, text, code=200):
        time.sleep(self.server.delay)
        body = f"{text}\n".encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def notify_ready():
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        where = "\0" + where[1:] if where.startswith("@") else where
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.sendto(b"READY=1", where)


def watch_pressure(path, state):
    kind = os.stat(path).st_mode
    first = base64.b64decode(os.environ.get("MEMORY_PRESSURE_WRITE", ""))
    if stat.S_ISSOCK(kind):
        link = socket.socket(socket.AF_UNIX)
        link.connect(path)
        fd = link.detach()
    else:
        # Read-write, so that a FIFO doesn't hang up when its writer closes.
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    if first and not stat.S_ISFIFO(kind):  # a FIFO would hand it back to us as an event
        os.write(fd, first)
    regular = stat.S_ISREG(kind)
    poll = select.poll()
    poll.register(fd, select.POLLPRI if regular else select.POLLIN)
    while True:
        poll.poll()
        if not regular and not os.read(fd, 4096):
            return
        state.shed()


def main():
    parser = argparse.ArgumentParser(description="An HTTP server with state in memory.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--cache-mb", type=int, default=0)
    parser.add_argument("--delay-ms", type=int, default=0, help="how long each answer takes")
    options = parser.parse_args()
    state = State(options.megabytes, options.cache_mb)
    signal.signal(signal.SIGUSR1, lambda number, frame: state.shed())
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.state = state
    server.delay = options.delay_ms / 1000
    watch = os.environ.get("MEMORY_PRESSURE_WATCH", "/dev/null")
    if watch != "/dev/null":
        threading.Thread(target=watch_pressure, args=(watch, state), daemon=True).start()
    print("ready", server.server_port, flush=True)
    notify_ready()
    server.serve_forever(poll_interval=None)  # no timer: idle is idle


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
