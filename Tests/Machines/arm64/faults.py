"""Lets the daemon end itself, as by `kill -9`, at each point of a hibernation, a resume and a recovery (DORMOUSE_FAULT). The
next daemon brings the worker back, and it answers on its open connection with its memory intact.

Arguments: `traced` runs without cgroups; names of points run only these."""
import sys

from machine import Clients, await_start, check, configure, dormouse, eventually, finish, start, state

EAGER = ["stopped", "seized", "scanned", "captured", "synced", "committed", "scratch-mapped", "evicting", "evicted", "restored",
         "frozen", "detached", "rested", "writing-back", "written-back", "unlinked", "tracker-opened", "base-kept"]
LAZY = ["userfault-opened", "fill-marked", "registered", "fill-prepared", "filling", "filled", "handing-over",
        "unregistered", "thawed", "base-kept"]
RECOVERY = ["recovery-seized", "borrowed-again", "registers-back"]
# Where the daemon dies first, before the one that dies in its recovery.
BEFORE = "evicted"
# Passed at the first sleep only.
ONCE = ["tracker-opened", "userfault-opened"]
AWAKE = ("background", "foreground")
words = sys.argv[1:]
traced = "traced" in words
chosen = [w for w in words if w != "traced"]
ways = [("eager", p) for p in EAGER] + ([] if traced else [("lazy", p) for p in LAZY]) + [("recovery", p) for p in RECOVERY]
surroundings = {"DORMOUSE_CGROUP": "/proc/nowhere"} if traced else {}


def begin(**environment):
    daemon = start(**surroundings, **environment)
    # It may end before it answers.
    eventually(lambda: daemon.poll() is not None or state("python") is not None, 120)
    return daemon


def end(daemon):
    daemon.kill()
    daemon.wait()


configure(["python"])
daemon = begin()
await_start(["python"])
clients = Clients(["python"])
check("python answers before the first sleep", clients.ask("python") is None)
reached = []
for way, point in ways:
    if chosen and point not in chosen:
        continue
    end(daemon)
    how = "eager" if way == "recovery" else way
    # The first sleep leaves a base, so that the second one is an overlay.
    daemon = begin(DORMOUSE_RESUME=how, DORMOUSE_FAULT=BEFORE if way == "recovery" else f"{point}:{1 if traced or point in ONCE else 2}")
    eventually(lambda: daemon.poll() is not None or state("python") in AWAKE, 120)
    for _ in range(3):
        if daemon.poll() is None:
            dormouse("hibernate", "python")
        if daemon.poll() is None:
            dormouse("wake", "python")
        # The end of a resume comes after its answer.
        if eventually(lambda: daemon.poll() is not None, 5):
            break
    if way == "recovery":
        daemon = begin(DORMOUSE_FAULT=point)
        eventually(lambda: daemon.poll() is not None or state("python") in AWAKE, 60)
    died = daemon.poll() == -9
    reached += [f"{way} {point}"] if died else []
    if not died:
        print(f"  {way} {point}: wasn't passed", flush=True)
        end(daemon)
    daemon = begin()
    wrong = clients.ask("python")
    check(f"python is intact after the daemon's death at {point}, {way}{', traced' if traced else ''}", wrong is None, wrong)
    if wrong is not None:
        break
print(f"  the daemon died at {len(reached)} points: {', '.join(reached)}")
check("most points were passed", chosen or len(reached) > len(ways) * 2 // 3, len(reached))
print(dormouse("status", "python")[1])
dormouse("shutdown")
finish()
