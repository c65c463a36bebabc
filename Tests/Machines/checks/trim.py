# check: trim and fill of running services, by root and by a user, with swap on a disk and as zram
# as: root demo
# each: SWAP=disk SWAP=zram
# seconds: 120
# order: 34
"""Five services with a connection each are trimmed while they run, answer on it, and are filled. A user's daemon uses
memory.reclaim of its workers' cgroups, root's process_madvise(2)."""
import os

from common import check, configure, document, dormouse, finish, note, processes, ready, rolled_up, run, skip, workers
from services import PORTS, configuration, connected

if os.environ["SWAP"] == "zram":
    if run("modprobe", "zram", user="root").code:
        skip("this kernel has no zram")
    open("/sys/block/zram0/disksize", "w").write("1G")
DEVICE = "/dev/zram0" if os.environ["SWAP"] == "zram" else "/dev/vdb"
configure(configuration())
ready(*PORTS)
done = dormouse("trim", "redis")
check("without swap, the refusal says so", done.code == 1 and "no swap" in done.text, f"{done.code}: {done.text}")
for command in (["mkswap", DEVICE], ["swapon", DEVICE]):
    check(f"{command[0]} works", run(*command, user="root").code == 0)
found = {c["id"]: c for c in document("doctor").get("checks", [])}.get("trim", {})
check("doctor says that workers can be trimmed", found.get("result") == "works", found)
note(found.get("found", ""))
clients = connected()
for name in PORTS:
    clients.ask(name)


def swapped(name, key="SwapPss"):
    """The private memory of a worker in swap, in KB. `Swap` includes shared memory, for each process that maps it."""
    return sum(rolled_up(pid, key) for pid in processes(name))


for name in PORTS:
    before = processes(name)
    done = dormouse("trim", name)
    note(done.text)
    check(f"{name} is trimmed", done.code == 0, done.text)
    moved = swapped(name)
    check(f"{name} has memory in swap", moved > 500, f"{moved} KB")
    last = workers()[name].get("trim", {}).get("last", {})
    check(f"{name}: memory that its processes share counts once in swap",
          last.get("swapped", 1 << 60) <= last.get("residentBefore", 0) + (1 << 20), last)
    check(f"{name} still runs, as the same processes", processes(name) == before and workers()[name]["state"] in (
        "foreground", "background"), workers()[name]["state"])
    wrong = clients.ask(name)
    check(f"{name} answers on its open connection", wrong is None, wrong)
    done = dormouse("fill", name)
    check(f"{name} is filled", done.code == 0, done.text)
    check(f"{name} has nothing in swap any more", swapped(name) < 100, f"{swapped(name)} KB")
    note(f"{name} after the fill: {swapped(name, 'Swap')} KB in swap with shared memory")
    wrong = clients.ask(name)
    check(f"{name} answers again", wrong is None, wrong)
finish()
