# check: trim and fill of running services, by root and by a user, with swap on a disk, as zram, and by userfaultfd
# as: root demo
# each: SWAP=disk SWAP=zram SWAP=none
# seconds: 120
# order: 34
"""Five services with a connection each are trimmed while they run, answer on it, and are filled. A user's daemon uses
memory.reclaim of its workers' cgroups, root's process_madvise(2). Without swap, root's uses userfaultfd."""
import os

from common import (AS, anonymous, check, configure, doctor_checks, dormouse, finish, note, processes, ready, rolled_up,
                    run, skip, workers)
from services import PORTS, configuration, connected

SWAP = os.environ["SWAP"]
MECHANISM = "userfaultfd" if SWAP == "none" else "swap"


def prepare():
    """Swap, after a trim without it was refused."""
    device = "/dev/zram0" if SWAP == "zram" else "/dev/vdb"
    if SWAP == "zram":
        if run("modprobe", "zram", user="root").code:
            skip("this kernel has no zram")
        open("/sys/block/zram0/disksize", "w").write("1G")
    done = dormouse("trim", "redis")
    check("without swap, the refusal says so", done.code == 1 and "no swap" in done.text, f"{done.code}: {done.text}")
    for command in (["mkswap", device], ["swapon", device]):
        check(f"{command[0]} works", run(*command, user="root").code == 0)
    found = doctor_checks().get("trim", {})
    check("doctor says that workers can be trimmed", found.get("result") == "works", found)
    note(found.get("found", ""))


def swapped(name, key="SwapPss"):
    """The private memory of a worker in swap, in KB. `Swap` includes shared memory, for each process that maps it."""
    return sum(rolled_up(pid, key) for pid in processes(name))


def resident(name):
    return sum(anonymous(pid) for pid in processes(name))


def check_trim(name):
    before, size = processes(name), resident(name)
    done = dormouse("trim", name)
    note(done.text)
    check(f"{name} is trimmed", done.code == 0, done.text)
    if MECHANISM == "swap":
        moved = swapped(name)
        check(f"{name} has memory in swap", moved > 500, f"{moved} KB")
    else:
        check(f"{name} has less memory", resident(name) < size * 3 // 4, f"{resident(name)} KB of {size}")
    last = workers()[name].get("trim", {}).get("last", {})
    check(f"{name}: memory that its processes share counts once",
          last.get("swapped", 1 << 60) <= last.get("residentBefore", 0) + (1 << 20), last)
    check(f"{name} still runs, as the same processes", processes(name) == before and workers()[name]["state"] in (
        "foreground", "background"), workers()[name]["state"])
    clients.check(name, "trimmed")
    done = dormouse("fill", name)
    check(f"{name} is filled", done.code == 0, done.text)
    if MECHANISM == "swap":
        check(f"{name} has nothing in swap any more", swapped(name) < 100, f"{swapped(name)} KB")
        note(f"{name} after the fill: {swapped(name, 'Swap')} KB in swap with shared memory")
    else:
        # What the program had freed by MADV_FREE isn't in the image.
        moved = last.get("swapped", 0) >> 10
        check(f"{name} has its memory again", resident(name) > moved * 3 // 4, f"{resident(name)} KB, {moved} KB moved")
    clients.check(name, "filled")


def check_refusal(name):
    """A user's daemon may not use userfaultfd in full. Nginx and PostgreSQL have processes of another user than root: these
    can't open one."""
    done = dormouse("trim", name)
    check(f"{name} isn't trimmed, with the reason", done.code == 1 and "can't be trimmed" in done.text, done.text)
    note(done.text)
    clients.check(name, "not trimmed")


configure(configuration().replace("policy_overrides:\n", f"policy_overrides:\n  trim: {{ mechanism: {MECHANISM} }}\n"))
ready(*PORTS)
if SWAP != "none":
    prepare()
clients = connected()
for name in PORTS:
    if MECHANISM == "userfaultfd" and (AS != "root" or name in ("nginx", "postgres")):
        check_refusal(name)
    else:
        check_trim(name)
finish()
