# locked_memory.py FILE: a thread waits for the page of a file (`hung_fuse.py --maps`), and another thread keeps this process's
# memory locked in mmap(2).
import ctypes, mmap, os, sys, threading, time

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
file = os.open(sys.argv[1], os.O_RDONLY)


def map_page():
    return libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_PRIVATE, file, ctypes.c_long(0))


page = ctypes.c_void_p(map_page())
# memcmp is called without Python's lock.
threading.Thread(target=lambda: libc.memcmp(page, page, ctypes.c_size_t(1)), daemon=True).start()
while True:
    map_page()
    time.sleep(0.01)
