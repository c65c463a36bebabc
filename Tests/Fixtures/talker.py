#!/usr/bin/env python3
"""A worker that speaks the worker protocol, in one of several ways, most of them bad.

    talker.py MODE LOG

It writes each received line and its own actions to LOG. After its mode's actions it sheds and answers.
"""
import array, ctypes, json, os, signal, socket, sys, threading, time

mode, log = sys.argv[1], open(sys.argv[2], "a", buffering=1)
path = os.environ["DORMOUSE_WORKER_SOCKET"]
cache = []


def note(text): log.write(text + "\n")


def fill():
    if mode == "hoard" or not cache:
        cache.extend(os.urandom(1 << 20) for _ in range(8))


def on_term(*_):
    note("SIGTERM")
    os._exit(0)


signal.signal(signal.SIGTERM, on_term)


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
    sheds = message["type"] in ("didEnterBackground", "memoryWarning")
    if sheds and mode == "hoard":
        fill()
    elif sheds and mode != "full":
        cache.clear()
        ctypes.CDLL(None).malloc_trim(0)
    if mode == "never":
        return
    if sheds and mode == "leave":
        note("left")
        daemon.shutdown(socket.SHUT_RDWR)
        return
    if sheds and mode == "late":
        threading.Timer(1, lambda: say(daemon, **done)).start()
        return
    if mode == "wrong":
        say(daemon, type="done", id=message["id"] + 1000)
    # Noted first: SIGTERM follows the answer at once, and its handler ends the process.
    if message["type"] == "willTerminate":
        note("saved")
    say(daemon, **done)
    if mode == "twice":
        say(daemon, **done)


def lines(daemon):
    try:
        for line in daemon.makefile("r", encoding="utf-8", newline="\n"):
            note(line.rstrip("\n"))
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


def garbage(daemon):
    for _ in range(100):
        try:
            daemon.sendall(b"\x00\xff{]}\n")
        except OSError:
            break


def long_line(daemon):
    try:
        daemon.sendall(b'{"type":"status","text":"' + b"x" * (1 << 20) + b'"}\n')
    except OSError:
        note("cut off")


def deaf(_):
    """Never reads."""
    while True:
        signal.pause()


def crowd(_):
    held = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for one in held:
        try:
            one.connect(path)
        except OSError:
            pass
    time.sleep(0.5)
    open_ones = 0
    for one in held:
        one.setblocking(False)
        try:
            data = one.recv(4096)
            open_ones += data != b""
        except BlockingIOError:
            open_ones += 1
        except OSError:
            pass
    note("connections %d" % open_ones)
    for one in held:
        one.close()


def passes(daemon):
    """Descriptors with everything, and many at a time."""
    for _ in range(50):
        pipes = [os.pipe() for _ in range(10)]
        numbers = array.array("i", [number for pipe in pipes for number in pipe])
        try:
            daemon.sendmsg([b'{"type":"status","text":"take these"}\n'],
                           [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        except OSError:
            note("cut off")
        for number in numbers:
            os.close(number)
    # No memfd.
    daemon.sendmsg([b'{"type":"purgeable"}\n'],
                   [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])


def task(daemon): say(daemon, type="beginTask", task="upload", limitSeconds=0.3)


def begin(daemon):
    misbehave = {
        "chatty": chatty, "garbage": garbage, "long": long_line, "deaf": deaf, "crowd": crowd,
        "passes": passes, "task": task,
    }.get(mode)
    say(daemon, type="ready")
    note("ready")
    if misbehave:
        misbehave(daemon)
        note("misbehaved")


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
