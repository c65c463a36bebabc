# hung_fuse.py [--opens|--maps] DIRECTORY...: mounts a file system over each directory. It answers only INIT, as one whose server
# has failed. With --opens it also has a file `file`, which can be opened; closing it is never answered. With --maps
# the file has a page, and a read of that is never answered: while it waits, mmap(2) of the file waits with the process's
# memory locked (FOPEN_DIRECT_IO). Prints `mounted`, and unmounts everything at SIGTERM.
import ctypes, os, select, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
INIT, DETACH = 26, 2
LOOKUP, GETATTR, OPEN = 1, 3, 14
maps = sys.argv[1] == "--maps"
opens = maps or sys.argv[1] == "--opens"


def mount(directory):
    device = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
    if libc.mount(b"hung", directory.encode(), b"fuse", 0, options.encode()):
        print("mount:", os.strerror(ctypes.get_errno()), flush=True)
        sys.exit(1)
    return device


def answer(device):
    request = os.read(device, 1 << 17)
    _, operation, unique = struct.unpack("IIQ", request[:16])
    if operation == INIT:
        body = struct.pack("IIIIHHIIHHIIII", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0, 0, 0, 0)
        body = body[:64].ljust(64, b"\0")
    elif opens and operation in (LOOKUP, GETATTR, OPEN):
        node = struct.unpack("Q", request[16:24])[0]
        isFile = operation == LOOKUP or node == 2
        attributes = struct.pack("6Q10I", node, 4096 * maps, 8 * maps, 0, 0, 0, 0, 0, 0, 0o100666 if isFile else 0o40755, 1, 0, 0, 0, 4096, 0)
        body = {LOOKUP: struct.pack("4Q2I", 2, 0, 60, 60, 0, 0) + attributes,
                GETATTR: struct.pack("Q2I", 60, 0, 0) + attributes, OPEN: struct.pack("Q2I", 1, maps, 0)}[operation]
    else:
        return
    os.write(device, struct.pack("IiQ", 16 + len(body), 0, unique) + body)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
devices = {mount(directory): directory for directory in sys.argv[1 + opens:]}
print("mounted", flush=True)
try:
    while True:
        ready, _, _ = select.select([*devices], [], [])
        for device in ready:
            answer(device)
finally:
    # From now on, waiting requests fail with ENOTCONN.
    for device, directory in devices.items():
        os.close(device)
        libc.umount2(directory.encode(), DETACH)
