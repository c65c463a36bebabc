# locked_socket.py: a server that holds the lock of one of its sockets for ever: it sends from missing memory
# (userfaultfd(2)), and the kernel holds the socket's lock while it waits for the memory. Prints `locked`, or
# the reason why that is impossible here.
import ctypes, mmap, os, platform, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.send.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
API, REGISTER, MISSING = 0xC018AA3F, 0xC020AA00, 1


def refuse(what):
    print("can't:", what, os.strerror(ctypes.get_errno()), flush=True)
    time.sleep(1000)


faults = libc.syscall(323 if platform.machine() == "x86_64" else 282, os.O_CLOEXEC)
if faults < 0:
    refuse("userfaultfd")
page = libc.mmap(None, 1 << 16, 3, 0x22, -1, 0)
api = ctypes.create_string_buffer(struct.pack("QQQ", 0xAA, 0, 0), 24)
if libc.ioctl(faults, API, api):
    refuse("UFFDIO_API")
area = ctypes.create_string_buffer(struct.pack("QQQQ", page, 1 << 16, MISSING, 0), 32)
if libc.ioctl(faults, REGISTER, area):
    refuse("UFFDIO_REGISTER")

server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
served, _ = server.accept()
client.sendall(b"a request")
served.recv(100)
threading.Thread(target=libc.send, args=(served.fileno(), page, 1 << 16, 0), daemon=True).start()
time.sleep(0.5)
print("locked", flush=True)
time.sleep(1000)
