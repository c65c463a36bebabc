#!/usr/bin/env python3
"""A worker that speaks the worker protocol.

    talker.py good|chatty LOG

It writes each received line and its own actions to LOG. `chatty` begins with 100,000 lines.
"""
import ctypes, json, os, select, signal, socket, sys, threading, time

mode, log = sys.argv[1], open(sys.argv[2], "a", buffering=1)
path = os.environ["DORMOUSE_WORKER_SOCKET"]
cache = []


def note(text): log.write(text + "\n")


def fill():
    if not cache:
        cache.extend(os.urandom(1 << 20) for _ in range(8))


def on_term(*_):
    note("SIGTERM")
    os._exit(0)


signal.signal(signal.SIGTERM, on_term)
# A signal that comes just before a call that waits is handled only after that. This pipe ends the wait.
awake, wakes = os.pipe()
for end in (awake, wakes):
    os.set_blocking(end, False)
signal.set_wakeup_fd(wakes)


def received(daemon):
    rest = b""
    while True:
        if daemon not in select.select([daemon, awake], [], [])[0]:
            os.read(awake, 4096)
            continue
        part = daemon.recv(65536)
        if not part:
            return
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in whole)


def connect():
    while True:
        daemon = socket.socket(socket.AF_UNIX)
        if daemon.connect_ex(path) == 0:
            return daemon
        daemon.close()
        time.sleep(0.05)


def say(daemon, **message): daemon.sendall(json.dumps(message).encode() + b"\n")


def answer(daemon, message):
    """Answers a message that needs an answer."""
    done = {"type": "done", "id": message["id"]}
    if message["type"] in ("didEnterBackground", "memoryWarning"):
        cache.clear()
        ctypes.CDLL(None).malloc_trim(0)
    # Noted first: SIGTERM follows the answer at once, and its handler ends the process.
    if message["type"] == "willTerminate":
        note("saved")
    say(daemon, **done)


def lines(daemon):
    try:
        for line in received(daemon):
            note(line)
            message = json.loads(line)
            if message["type"] == "didEnterForeground":
                fill()
                note("filled")
            yield message
    except OSError:
        pass
    note("end")


def chatty(daemon):
    def talk():
        try:
            for _ in range(100_000):
                daemon.sendall(b'{"type":"status","text":"I have more to say"}\n')
        except OSError:
            pass
    threading.Thread(target=talk, daemon=True).start()


def begin(daemon):
    say(daemon, type="ready")
    note("ready")
    if mode == "chatty":
        chatty(daemon)


fill()
is_first = True
while True:
    with connect() as connection:
        if is_first:
            begin(connection)
            is_first = False
        for message in lines(connection):
            if "deadlineSeconds" in message:
                answer(connection, message)
