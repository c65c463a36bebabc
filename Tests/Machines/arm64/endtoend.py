"""Runs a daemon with python, node and redis (or with those that the arguments name) in the arm64 machine: each hibernates
and wakes on an open connection, eagerly and with pages missing, also after `kill -9` of the daemon."""
import signal
import sys

from machine import PORTS, Clients, await_start, check, configure, dormouse, eventually, finish, start, state, status, DORMOUSE
import subprocess

NAMES = [name for name in PORTS if name in (sys.argv[1:] or PORTS)]


def hibernate(what):
    for name in NAMES:
        code, text = dormouse("hibernate", name)
        check(f"{name} hibernates, {what}", code == 0 and state(name) == "hibernated", text)
        print("  " + text.replace("\n", "\n  "))


def answers(clients, what):
    for name in NAMES:
        wrong = clients.ask(name)
        check(f"{name} answers on its open connection, {what}", wrong is None, wrong)
        check(f"{name} is awake, {what}",
              eventually(lambda: state(name) in ("background", "foreground"), 60), state(name))


def after_death(daemon, **environment):
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    daemon = start(**environment)
    check("the next daemon is there", eventually(lambda: state(NAMES[0]) is not None, 120), dormouse("ps")[1])
    return daemon


def several(clients, how):
    """The second image and later ones have only what has changed; `how` is the way of all resumes."""
    unchanged = dict.fromkeys(NAMES, 0)
    for number in (1, 2, 3):
        hibernate(f"{how} {number}")
        for name in NAMES:
            facts = status(name)
            unchanged[name] += facts.get("hibernateUnchanged") or 0
            way = (facts.get("resume") or {}).get("code")
            # The first image of a small worker, or one that can't be mapped so, is eager by the daemon's choice.
            print(f"  {name}: {way}, {unchanged[name]} bytes of overlays taken from bases, {facts.get('resume')}")
            if how == "lazy":
                check(f"{name} will be resumed with pages missing, {how} {number}", way == "lazy", facts.get("resume"))
        answers(clients, f"{how} {number}")
    for name in NAMES:
        check(f"{name}: an overlay has taken pages from its base, {how}", unchanged[name] > 0, unchanged)


print(subprocess.run([DORMOUSE, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip())
configure(NAMES)
daemon = start(DORMOUSE_RESUME="eager")
await_start(NAMES)
code, text = dormouse("doctor")
print("  " + text.replace("\n", "\n  "))
clients = Clients(NAMES)
answers(clients, "before the first sleep")
several(clients, "eager")
daemon = after_death(daemon, DORMOUSE_RESUME="lazy")
several(clients, "lazy")
hibernate("before kill -9 of the daemon")
daemon = after_death(daemon)
answers(clients, "after kill -9 of the daemon")
hibernate("by its daemon's own choice")
answers(clients, "by its daemon's own choice")
print(dormouse("ps")[1])
dormouse("shutdown")
finish()
