# check: python, node, redis, nginx and PostgreSQL with an open transaction hibernate and wake, connections kept
# as: root demo
# seconds: 120
# order: 20
import time

from common import anonymous, check, configure, dormouse, eventually, finish, hibernate, note, processes, ready, state, workers
from services import PORTS, configuration, connected

configure(configuration())
ready(*PORTS)
clients = connected()
clients.check_all("before its first sleep")
for turn in (1, 2):
    for name in PORTS:
        before = workers()[name]["footprint"]
        done = hibernate(name)
        check(f"{name} hibernates, {turn}", done.code == 0, done.text)
        note(done.text)
        # Pages that forked processes share stay, and so does shared memory, of which PostgreSQL has some MB.
        if name in ("python", "node", "redis"):
            after = [anonymous(p) for p in processes(name)]
            check(f"{name}: at most 256 KB of anonymous memory stay, {turn}", after and sum(after) <= 256, after)
        after = workers()[name]["footprint"]
        limit = before - 1 if name in ("nginx", "postgres") else 256 * 1024
        check(f"{name}: its footprint has fallen, {turn}", after <= limit, f"{before}, then {after}")
    check(f"all five sleep at the same time, {turn}", all(state(n) == "hibernated" for n in PORTS), dormouse("ps").text)
    for name in PORTS:
        began = time.monotonic()
        clients.check(name, turn)
        note(f"after {(time.monotonic() - began) * 1000:.0f} ms")
        check(f"{name} is awake, {turn}", eventually(lambda: state(name) in ("background", "foreground"), 10), state(name))
rows, hidden, seen = clients.commit()
check("PostgreSQL: no other session saw rows before the commit", hidden == "0", hidden)
check("PostgreSQL: the transaction that slept commits all its rows", seen == rows, f"{seen}, expected {rows}")
finish()
