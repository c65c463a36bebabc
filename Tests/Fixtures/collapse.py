"""collapse.py PID: makes huge pages of the areas of another process that it wants huge pages for (MADV_COLLAPSE).

This is what khugepaged does by itself, with the same effect: holes are filled with zeros. Ends with 1 if the kernel
refuses."""
import ctypes
import sys

PIDFD_OPEN, PROCESS_MADVISE, MADV_COLLAPSE = 434, 440, 25
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
descriptor = libc.syscall(PIDFD_OPEN, pid, 0)
done = False
for line in open(f"/proc/{pid}/smaps"):
    words = line.split()
    if not words[0].endswith(":"):
        area = [int(end, 16) for end in words[0].split("-")]
    elif words[0] == "VmFlags:" and "hg" in words:
        vector = (ctypes.c_ulong * 2)(area[0], area[1] - area[0])
        if libc.syscall(PROCESS_MADVISE, descriptor, vector, ctypes.c_ulong(1), MADV_COLLAPSE, 0) < 0:
            sys.exit(1)
        done = True
sys.exit(0 if done else 1)
