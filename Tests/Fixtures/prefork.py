"""A prefork server: the master waits at a pipe, and its children each in another call at the listening socket.

With the argument `serving`, the master waits at the socket, too. It prints `ready` when all of them wait.
"""

import os
import select
import socket
import sys
import time

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
listener.setblocking(False)


def wait_by_select():
    select.select([listener], [], [])


def wait_by_poll():
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.poll()


def wait_by_epoll():
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    epoll.poll()


def wait_by_accept():
    listener.setblocking(True)
    listener.accept()


children = []
for wait in [wait_by_select, wait_by_poll, wait_by_epoll, wait_by_accept]:
    pid = os.fork()
    if pid == 0:
        wait()
        time.sleep(3600)
    children.append(pid)


def waits(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


while not all(waits(pid) for pid in children):
    time.sleep(0.01)
print("ready", flush=True)
pipe, _ = os.pipe()
select.select([pipe, listener] if sys.argv[1:] == ["serving"] else [pipe], [], [])
