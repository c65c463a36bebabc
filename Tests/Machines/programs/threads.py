#!/usr/bin/python3
"""threads.py PORT: server.py, and a thread that only waits, on a stack that ends with a range for a huge page."""
import ctypes
import mmap
import pathlib
import runpy
import sys

HUGE = 2 << 20
libc = ctypes.CDLL(None, use_errno=True)
area = mmap.mmap(-1, 3 * HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(area)) + HUGE - 1 & ~(HUGE - 1)
attributes = ctypes.create_string_buffer(256)
thread = ctypes.c_ulong()
libc.pthread_attr_init(attributes)
assert libc.pthread_attr_setstack(attributes, ctypes.c_void_p(start), ctypes.c_size_t(2 * HUGE)) == 0
assert libc.pthread_create(ctypes.byref(thread), attributes, ctypes.cast(libc.pause, ctypes.c_void_p), None) == 0
runpy.run_path(str(pathlib.Path(__file__).with_name("server.py")), run_name="__main__")
