# userfault_client.py SOCKET ACTION [ARGUMENT]: a client of the service for userfaultfd, in most actions a hostile one.
# Prints what came back.
import array, ctypes, fcntl, os, socket, struct, subprocess, sys, time

path, action = sys.argv[1], sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
API, NEW = 0xC018AA3F, 0xAA00
EVENTS = 0x02 | 0x04 | 0x08 | 0x40


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(path)
    return s


def ask(text, *descriptors, s=None):
    """The answer's text, and its descriptors."""
    try:
        s = s or connect()
        s.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else [])
        return answer(s)
    except OSError as e:
        return e.strerror, []


def answer(s):
    data, control, _, _ = s.recvmsg(100, 1024)
    got = array.array("i")
    for level, kind, content in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            got.frombytes(content)
    return data.decode() or "nothing", list(got)


def patient(text, *descriptors, own=False):
    """As `ask`, but while the service is busy, as it is until the processes of earlier connections have ended."""
    end = time.monotonic() + 60
    while True:
        s = connect() if own else None
        got = ask(text, *descriptors, *([s.fileno()] if own else []), s=s)
        # While the queue is full there is no connection, and the end of a refused one may overtake the answer.
        is_answer = str(got[0]).startswith(("done", "failed", "refused", "Permission"))
        if is_answer and got[0] != "refused busy" or time.monotonic() > end:
            return got
        time.sleep(0.02)


def userfault():
    return fcntl.ioctl(patient("device")[1][0], NEW, os.O_CLOEXEC | os.O_NONBLOCK)


def negotiate(descriptor, features):
    """Negotiates without the service."""
    try:
        fcntl.ioctl(descriptor, API, struct.pack("QQQ", 0xAA, features, 0))
        return "done"
    except OSError as e:
        return e.strerror


def show(answer):
    print(answer[0], len(answer[1]))


if action == "ask":
    show(patient(*sys.argv[3:]))
elif action == "use":
    # All that a daemon does with it, and what the kernel refuses to every user.
    device = patient("device")[1][0]
    print("device", os.readlink("/proc/self/fd/%d" % device))
    for kind in ("negotiate", "negotiate tracking"):
        descriptor = userfault()
        print("alone:", negotiate(descriptor, EVENTS))
        print(kind + ":", patient(kind, descriptor)[0])
        print("again:", patient(kind, descriptor)[0])
        print(next(l.split(":")[2] for l in open("/proc/self/fdinfo/%d" % descriptor) if l.startswith("API")))
elif action == "pass":
    # Descriptors that aren't userfaultfds, too many, and none.
    a, b = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    lingering = socket.create_connection(listener.getsockname())
    lingering.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    device = patient("device")[1][0]
    unused = userfault()
    memory = os.memfd_create("anon_inode:[userfaultfd]")
    named = os.open(sys.argv[3] + "/anon_inode:[userfaultfd]", os.O_RDWR | os.O_CREAT, 0o600)
    for number in (os.open("/etc/passwd", os.O_RDONLY), a.fileno(), lingering.fileno(), device, memory, named, os.pipe()[0]):
        show(patient("negotiate", number))
    show(patient("negotiate", *[os.dup(unused) for _ in range(253)]))
    show(patient("negotiate"))
    show(patient("device", unused))
    # Its own connection, passed to the service, which passes the device into it.
    show(patient("device", own=True))
    # It is unused still.
    show(patient("negotiate", unused))
elif action == "garbage":
    for text in ("", "x", "device ", "DEVICE", "device\0", "negotiate  tracking", "done", "a" * 70000, "device" + "\0" * 200):
        show(patient(text))
elif action == "silent":
    # Connections that send nothing, until they are ended.
    silent = [connect() for _ in range(int(sys.argv[3]))]
    print("connected", flush=True)
    for s in silent:
        try:
            print(answer(s)[0], flush=True)
        except OSError as e:
            print(e.strerror, flush=True)
elif action == "flood":
    # Disconnects at each moment; a connection is refused while the queue is full.
    end, count = time.monotonic() + float(sys.argv[3]), 0
    unused = userfault()
    while time.monotonic() < end:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        try:
            s.connect(path)
            count += 1
            if count % 3:
                s.sendmsg([b"negotiate" if count % 2 else b"device"], [
                    (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [unused]))] if count % 2 else [])
        except OSError:
            pass
        if count % 5:
            s.close()
    print("flooded", count)
elif action == "hang":
    # A descriptor of a file that no process can close without waiting.
    number = os.open(sys.argv[4], os.O_RDONLY)
    for _ in range(int(sys.argv[3])):
        print(ask("negotiate", number)[0], flush=True)
elif action == "setuid":
    # A fork's descriptor appears in the process that reads the message, here a program that was executed after the
    # negotiation, with a userfaultfd as its input. The argument is that program.
    descriptor = userfault()
    print(patient("negotiate", descriptor)[0], flush=True)
    PAGE = 4096
    libc.mmap.restype = ctypes.c_void_p
    area = libc.mmap(None, ctypes.c_size_t(PAGE), 3, 0x22, -1, 0)
    fcntl.ioctl(descriptor, 0xC020AA00, struct.pack("QQQQ", area, PAGE, 1, 0))
    os.set_blocking(descriptor, True)
    reader = subprocess.Popen(sys.argv[3:], stdin=descriptor)
    if os.fork() == 0:
        os._exit(0)
    reader.wait()
