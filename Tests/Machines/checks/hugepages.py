# check: what a hibernated worker has freed stays free while the kernel makes huge pages (khugepaged)
# as: root demo
# seconds: 180
# order: 33
"""Huge pages are on for all programs. While the worker sleeps, khugepaged looks at all memory again and again. The worker
has a thread whose control block, which stays in RAM, lies in an area that khugepaged takes. (HugePagesTests has what
khugepaged does during a hibernation.)"""
import http.client
import pathlib
import struct
import subprocess
import sys
import time

from common import (CALM, PATIENCE, PROGRAMS, anonymous, areas, check, configure, eventually, finish, hibernate, note,
                    processes, ready, skip, state)

PORT = 8401
HUGE = pathlib.Path("/sys/kernel/mm/transparent_hugepage")
if not HUGE.exists():
    skip("this kernel has no huge pages")
(HUGE / "enabled").write_text("always")
for key, value in {"defrag": 1, "alloc_sleep_millisecs": 100, "pages_to_scan": 65536, "max_ptes_none": 511}.items():
    (HUGE / "khugepaged" / key).write_text(str(value))


def pause(milliseconds):
    """How long khugepaged sleeps after each look at all memory."""
    (HUGE / "khugepaged/scan_sleep_millisecs").write_text(str(milliseconds))


def scans():
    """How often khugepaged has looked at all memory."""
    return int((HUGE / "khugepaged/full_scans").read_text())


def huge(pid):
    """KB of its memory in huge pages."""
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("AnonHugePages:"))


def smaps():
    return "\n".join(areas(pathlib.Path(f"/proc/{pid}/smaps").read_text()))


def whole():
    """Pages of its own in RAM that are parts of huge pages: these are in RAM whole, whatever the process has of them."""
    count = 0
    with open(f"/proc/{pid}/pagemap", "rb") as pages, open("/proc/kpageflags", "rb") as flags:
        for line in areas(pathlib.Path(f"/proc/{pid}/smaps").read_text()):
            start, end = (int(address, 16) // 4096 for address in line.split()[3].split("-"))
            pages.seek(start * 8)
            for entry in struct.unpack(f"={end - start}Q", pages.read((end - start) * 8)):
                # In RAM, no file's; then the frame's number.
                if entry >> 63 and not entry >> 61 & 1:
                    flags.seek((entry & (1 << 55) - 1) * 8)
                    count += struct.unpack("=Q", flags.read(8))[0] >> 22 & 1
    return count


def scanned(times):
    """Until khugepaged has looked at all memory again, this number of times."""
    end = scans() + times
    return eventually(lambda: scans() >= end, 90, 0.5)


# One page of this process is used, and its neighbours are empty: khugepaged has to make a huge page of them.
control = subprocess.Popen([sys.executable, "-c", """
import ctypes, mmap, time
libc, room, area = ctypes.CDLL(None), 4 << 20, mmap.mmap(-1, 6 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(area)) + (2 << 20) - 1 & ~((2 << 20) - 1)
libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(room), 15)
page = ctypes.c_char.from_address(at)
page.value = b"x"
libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(room), 14)
while True:
    page.value = b"x"
    time.sleep(0.5)
"""])
pause(100)
configure(CALM + f"""workers:
  huge: {{ command: [python3, {PROGRAMS}/threads.py, "{PORT}"], readiness: {{ tcp: {PORT} }} }}
""")
ready("huge")
pid = processes("huge")[0]
connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60 * PATIENCE)


def ask():
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)


check("khugepaged makes a huge page around a used page", eventually(lambda: huge(control.pid) >= 2048, 90, 0.5))
for turn in (1, 2, 3):
    answer = ask()
    check(f"it answers on its open connection ({turn})", answer == f"{pid} {turn} intact", answer)
    note(f"awake: {anonymous(pid)} KB, of them {huge(pid)} KB in huge pages")
    pause(600_000)
    time.sleep(1)  # It ends the look that it has begun.
    done = hibernate("huge")
    check(f"it hibernates ({turn})", done.code == 0, done.text)
    first = anonymous(pid)
    if not check(f"at most 256 KB stay ({turn})", first <= 256, f"{first} KB"):
        note(smaps())
    check(f"no page that stays is part of a huge page ({turn})", whole() == 0, whole())
    pause(100)
    check(f"khugepaged looks at all memory ({turn})", scanned(4), scans())
    later = anonymous(pid)
    if not check(f"no more has come back ({turn})", later <= first, f"{first} KB, then {later} KB"):
        note(smaps())
    check(f"it sleeps still ({turn})", state("huge") == "hibernated", state("huge"))
answer = ask()
check("it answers with its memory", answer == f"{pid} 4 intact", answer)
control.kill()
finish()
