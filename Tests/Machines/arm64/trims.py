"""Trims python, node and redis (or those that the arguments name) by userfaultfd in the arm64 machine: they answer on an
open connection, are trimmed again, stay trimmed after `kill -9` of the daemon, hibernate while trimmed, and are filled."""
import signal
import sys

from machine import PORTS, Clients, await_start, check, configure, dormouse, eventually, finish, start, state, status

NAMES = [name for name in PORTS if name in (sys.argv[1:] or PORTS)]


def missing(name):
    return (status(name).get("trim") or {}).get("swapped") or 0


def trim(what):
    for name in NAMES:
        code, text = dormouse("trim", name)
        check(f"{name} is trimmed, {what}", code == 0 and "in its image" in text, text)
        check(f"{name} runs on, {what}", state(name) in ("background", "foreground"), state(name))
        print("  " + text)


def answers(clients, what):
    for name in NAMES:
        wrong = clients.ask(name)
        check(f"{name} answers on its open connection, {what}", wrong is None, wrong)


configure(NAMES)
daemon = start(DORMOUSE_TEST_STANDSTILL="60")
await_start(NAMES)
clients = Clients(NAMES)
answers(clients, "before the first trim")
for number in (1, 2, 3):
    trim(f"trim {number}")
    answers(clients, f"trim {number}")
for name in NAMES:
    check(f"{name}: what it doesn't need stays in its image", missing(name) > 0, status(name))
daemon.send_signal(signal.SIGKILL)
daemon.wait()
answers(clients, "while there is no daemon")
daemon = start(DORMOUSE_TEST_STANDSTILL="60")
check("the next daemon is there", eventually(lambda: state(NAMES[0]) is not None, 120), dormouse("ps")[1])
for name in NAMES:
    check(f"{name} is trimmed after kill -9 of the daemon", eventually(lambda: missing(name) > 0, 120), status(name))
answers(clients, "after kill -9 of the daemon")
trim("by the next daemon")
for name in NAMES:
    code, text = dormouse("hibernate", name)
    # It may be woken at once (docs/waking.md).
    check(f"{name} hibernates while it is trimmed", code == 0 and "is hibernated" in text, text)
answers(clients, "after that hibernation")
trim("after it")
for name in NAMES:
    code, text = dormouse("fill", name)
    check(f"{name} is filled", code == 0 and missing(name) == 0, text)
answers(clients, "filled")
print(dormouse("ps")[1])
dormouse("shutdown")
finish()
