# check: Yama's ptrace_scope 0 to 3: what hibernates, and what kill -9 and an upgrade of the daemon leave
# as: root demo
# each: SCOPE=0 SCOPE=1 SCOPE=2 SCOPE=3
# seconds: 100
# order: 35
import os
import signal

from common import (AS, check, configure, daemon, document, dormouse, eventually, finish, hibernate, journal, note, ready, run,
                    state, systemctl, unit)
from services import PORTS, configuration, connected

SCOPE = int(os.environ["SCOPE"])
run("sysctl", "-qw", f"kernel.yama.ptrace_scope={SCOPE}", user="root")
check("the scope is set", open("/proc/sys/kernel/yama/ptrace_scope").read().strip() == str(SCOPE))
# Root has CAP_SYS_PTRACE, which is enough up to 2.
traces = SCOPE <= (2 if AS == "root" else 1)
strangers = SCOPE <= (2 if AS == "root" else 0)
configure(configuration())
ready(*PORTS)
clients = connected()
for name in PORTS:
    clients.ask(name)


def all_answer(when):
    for name in PORTS:
        wrong = clients.ask(name)
        check(f"{when}, {name} answers on its open connection, the same process", wrong is None, wrong)


found = {c["id"]: c for c in document("doctor").get("checks", [])}
check("doctor: tracing a worker", found["ptrace"]["result"] == ("works" if traces else "missing"), found["ptrace"])
check("doctor: tracing after a restart", found["ptrace-after-restart"]["result"] == (
    "works" if strangers else "limited" if traces else "missing"), found["ptrace-after-restart"])
check("doctor: hibernation as a whole", (found["hibernation"]["result"] == "works") == traces, found["hibernation"])

if not traces:
    for name in PORTS:
        done = dormouse("hibernate", name)
        check(f"{name} isn't hibernated, and the answer says why", done.code == 1 and len(done.text) > 20, f"{done.code}: {done.text}")
        note(done.text)
    all_answer("after the refusals")
    for name in PORTS:
        done = dormouse("suspend", name)
        check(f"{name} is suspended all the same", done.code == 0 and state(name) == "suspended", done.text)
        done = dormouse("wake", name)
        check(f"{name} is woken", done.code == 0, done.text)
    all_answer("after a suspension")
    finish()

for how in ("kill -9", "an upgrade"):
    for name in PORTS:
        done = hibernate(name)
        check(f"before {how}: {name} hibernates", done.code == 0, done.text)
    old = daemon()
    if how == "kill -9":
        os.kill(old, signal.SIGKILL)
    else:
        check("shutdown --keep-workers succeeds", dormouse("shutdown", "--keep-workers").code == 0)
        eventually(lambda: unit("ActiveState") == "inactive", 20)
        systemctl("start", "dormouse")
    check(f"after {how}: another daemon runs", eventually(lambda: daemon() not in (0, old) and document("ps"), 40, 1), unit("ActiveState"))
    if strangers:
        check(f"after {how}: all five sleep on", all(state(n) == "hibernated" for n in PORTS), dormouse("ps").text)
    else:
        awake = eventually(lambda: all(state(n) in ("background", "foreground") for n in PORTS), 40, 1)
        check(f"after {how}: all five were woken, as documented", awake, dormouse("ps").text)
    all_answer(f"after {how}")
    if not strangers:
        done = dormouse("hibernate", "redis")
        check(f"after {how}: a worker of the earlier daemon isn't hibernated until its restart", done.code == 1, done.text)
        note(done.text)
        rows, _, seen = clients.commit()
        check(f"after {how}: the open transaction commits", rows == seen, f"{seen}, expected {rows}")
        for name in PORTS:
            dormouse("restart", name)
        ready(*PORTS)
        clients = connected()
        for name in PORTS:
            clients.ask(name)
note(journal()[-800:])
finish()
