#!/usr/bin/env python3
"""A worker with purgeable memory, made by hand: docs/worker-protocol.md.

Eight contents of 1 MB that may be taken, and two of 1 MB that may not: one is held, one isn't volatile.
Whenever it runs again, and on every `didEnterForeground`, it reports in its status how many of the eight are
lost, after it has checked that the others are unchanged.
"""
import array, json, mmap, os, socket, struct, time

MEGABYTE = 1 << 20
TABLE = 4096
HELD, VOLATILE, PURGING, USED = 1, 1 << 32, 1 << 33, 1 << 34
F_ADD_SEALS, SHRINK, GROW = 1033, 2, 4

count = 10
size = TABLE + count * MEGABYTE
memfd = os.memfd_create("purgeable", os.MFD_ALLOW_SEALING)
os.ftruncate(memfd, size)
import fcntl
fcntl.fcntl(memfd, F_ADD_SEALS, SHRINK | GROW)
memory = mmap.mmap(memfd, size)
memory[:16] = b"DORMPRG1" + struct.pack("<II", count, TABLE)


def slot(index): return 64 + 32 * index
def place(index): return TABLE + index * MEGABYTE
def content(index): return bytes([index + 1]) * MEGABYTE


for index in range(count):
    memory[place(index):place(index) + MEGABYTE] = content(index)
    state = USED | VOLATILE if index < 8 else USED | VOLATILE | HELD if index == 8 else USED
    memory[slot(index):slot(index) + 24] = struct.pack("<QQQ", state, place(index), MEGABYTE)


def look():
    lost = wrong = 0
    for index in range(count):
        state, = struct.unpack("<Q", memory[slot(index):slot(index) + 8])
        if state & USED:
            wrong += memory[place(index):place(index) + MEGABYTE] != content(index)
        else:
            lost += 1
            wrong += index >= 8 or state >> 35 == 0
    return "lost %d, wrong %d" % (lost, wrong)


while True:
    with socket.socket(socket.AF_UNIX) as daemon:
        if daemon.connect_ex(os.environ["DORMOUSE_WORKER_SOCKET"]) == 0:
            daemon.sendall(b'{"type":"ready"}\n')
            daemon.sendmsg([b'{"type":"purgeable"}\n'],
                           [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memfd]))])
            for line in daemon.makefile():
                message = json.loads(line)
                if message["type"] in ("didResume", "didEnterForeground", "hello"):
                    text = json.dumps({"type": "status", "text": look()})
                    daemon.sendall(text.encode() + b"\n")
                if "deadlineSeconds" in message:
                    daemon.sendall(b'{"type":"done","id":%d}\n' % message["id"])
    time.sleep(0.05)
