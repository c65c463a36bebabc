#!/usr/bin/env python3
"""A worker that keeps changing what the daemon reads of it, and sends what a worker must not send.

    hostile.py ARGUMENT

It has a huge environment, descriptors of many kinds, mappings and a name with odd characters, and purgeable memory
whose table another thread overwrites all the time. It claims to be each process that it sees with ARGUMENT in its
command line. After a round of all that it writes `round` to its log, and whether it could use the control socket; it
answers requests as a worker should.
"""
import array, ctypes, fcntl, json, mmap, os, random, socket, struct, sys, tempfile, threading, time

if "HUGE_0" not in os.environ:
    odd = "\n) R 1 (x\\\x1b[2J=DORMOUSE_RUN="
    os.environ.update({"HUGE_%d" % n: odd + "x" * 4000 for n in range(200)})
    with open("/proc/self/cmdline", "rb") as file:
        os.execv(sys.executable, file.read().split(b"\0")[:-1])

libc = ctypes.CDLL(None)
# The sockets of workers are in a directory beside it.
control = os.environ["DORMOUSE_WORKER_SOCKET"].rpartition(".workers/")[0]
TABLE, PAGES, SLOTS = 4096, 64, 100
USED, VOLATILE = 1 << 34, 1 << 32


def victims():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if file.read().endswith(b"\0" + sys.argv[1].encode() + b"\0") and int(pid) != os.getpid():
                    yield pid
        except OSError:
            pass


def odd_descriptors():
    """Descriptors that imitate the daemon's own or that wait when they are read, and full sockets."""
    directory = tempfile.mkdtemp()
    os.mkfifo(directory + "/fifo")
    name = directory + "/a\n7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [heap]"
    with open(name, "wb") as file:
        file.write(bytes(8192))
    mapped = os.open(name, os.O_RDWR)
    mappings = [mmap.mmap(mapped, 4096) for _ in range(20)]
    os.unlink(name)
    held = [mapped, os.open(directory + "/fifo", os.O_RDWR | os.O_NONBLOCK), os.open("/", os.O_PATH),
            os.open("/proc/self/maps", os.O_RDONLY), libc.epoll_create1(0), os.pidfd_open(os.getpid()),
            libc.timerfd_create(1, 0), libc.eventfd(0, 0), libc.inotify_init(), os.memfd_create("dormouse-faults"),
            os.memfd_create("x (deleted)\npos: 7"), *os.pipe()]
    os.unlink(directory + "/fifo")
    os.rmdir(directory)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        pair = socket.socketpair(socket.AF_UNIX, kind)
        pair[0].setblocking(False)
        try:
            while True:
                pair[0].send(b"x" * 4096)
        except BlockingIOError:
            pass
        held += [end.detach() for end in pair]
    return held, mappings


def purgeable():
    memory_file = os.memfd_create("purgeable", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory_file, TABLE + PAGES * 4096)
    fcntl.fcntl(memory_file, 1033, 2 | 4)  # F_ADD_SEALS
    memory = mmap.mmap(memory_file, TABLE + PAGES * 4096)
    memory[TABLE:] = b"x" * (PAGES * 4096)
    memory[:16] = b"DORMPRG1" + struct.pack("<II", SLOTS, TABLE)
    return memory_file, memory


def overwrite(memory):
    """Contents that overlap, lie in the table or end after the file, and a header that changes."""
    numbers = [0, 1, 64, 4095, 4096, 8192, TABLE + PAGES * 4096, 1 << 31, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1]
    states = [0, USED, USED | VOLATILE, USED | VOLATILE | 1, (1 << 64) - 1]
    while True:
        for slot in range(SLOTS):
            place = 64 + 32 * slot
            memory[place:place + 24] = struct.pack(
                "<QQQ", random.choice(states), random.choice(numbers), random.choice(numbers))
        memory[:16] = random.choice([b"DORMPRG1", bytes(8)]) + struct.pack("<II", random.choice([0, SLOTS, 1 << 31]), 1)
        time.sleep(0.01)


def rename():
    names = [b"a) R 1 (b", b"\n\n) Z 1", b"(((", b"\xff\xfe\x1b[2J", b") S 1 1 1 1", b"", b"dormouse"]
    while True:
        libc.prctl(15, random.choice(names))  # PR_SET_NAME
        time.sleep(0.01)


def flood():
    """Datagrams that the daemon must ignore, until one finds no room."""
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.setblocking(False)
    path = os.environ["NOTIFY_SOCKET"]
    notify.connect("\0" + path[1:] if path[0] == "@" else path)
    lines = [*(b"MAINPID=" + pid.encode() for pid in victims()), b"MAINPID=1", b"STATUS=\x1b[2J\x1b]0;x\x07" + b"y" * 3000, b"\n=\n\0=",
             b"FDSTORE=1\nFDNAME=a:b", b"WATCHDOG_USEC=" + b"9" * 30, b"A=1\n" * 1000,
             b"X_DORMOUSE_TASK=" + b"z" * 3000 + b"\nX_DORMOUSE_TASK=\nX_DORMOUSE_TASK_END=" + b"z" * 3000]
    read, write = os.pipe()
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [read, write] * 50))]
    try:
        for _ in range(200):
            for line in lines:
                notify.send(line)
            notify.sendmsg([b"FDSTORE=1\nFDNAME=pipes"], passed)
    except OSError:
        pass
    os.close(read)
    os.close(write)
    notify.setblocking(True)
    return notify


def reaches_control():
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(control)
            client.sendall(b'{"id":1,"verb":"ps"}\n')
            return bool(client.recv(1))
        except OSError:
            return False


held = odd_descriptors()
memory_file, memory = purgeable()
worker = socket.socket(socket.AF_UNIX)
worker.connect(os.environ["DORMOUSE_WORKER_SOCKET"])
for _ in range(3):
    worker.sendmsg([b'{"type":"purgeable"}\n'],
                   [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory_file]))])
for function, arguments in ((overwrite, (memory,)), (rename, ())):
    threading.Thread(target=function, args=arguments, daemon=True).start()
notify = flood()
print("round", "reached" if reaches_control() else "refused", flush=True)
notify.send(b"READY=1")
for line in worker.makefile(errors="replace"):
    message = json.loads(line)
    if "deadlineSeconds" in message:
        worker.sendall(b'{"type":"done","id":%d}\n' % message["id"])
print("end", flush=True)
while True:
    time.sleep(0.2)
