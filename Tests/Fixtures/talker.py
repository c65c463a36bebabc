#!/usr/bin/env python3
"""A worker that speaks the worker protocol, in one of several ways, most of them bad.

    talker.py MODE LOG

It writes each received line and its own actions to LOG. After its mode's actions it sheds and answers.
"""
import array, ctypes, json, os, select, signal, socket, sys, threading, time

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
    sheds = message["type"] in ("didEnterBackground", "memoryWarning")
    if sheds and mode == "hoard":
        fill()
    elif sheds:
        cache.clear()
        ctypes.CDLL(None).malloc_trim(0)
    if mode == "never":
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
        time.sleep(0.2)


def count_open(held):
    count = 0
    for one in held:
        try:
            count += one.recv(4096) != b""
        except BlockingIOError:
            count += 1
        except OSError:
            pass
    return count


def crowd(_):
    held = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for one in held:
        try:
            one.connect(path)
        except OSError:
            pass
    for one in held:
        one.setblocking(False)
    # On a busy machine the daemon closes most of them later.
    for _ in range(600):
        time.sleep(0.1)
        if count_open(held) <= 7:
            break
    time.sleep(0.5)
    note("connections %d" % count_open(held))
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


def task(daemon): say(daemon, type="beginTask", task="upload", limitSeconds=2)


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
