# check: Yama's ptrace_scope 0 to 3: what hibernates, and what kill -9 and an upgrade of the daemon leave
# as: root demo
# each: SCOPE=0 SCOPE=1 SCOPE=2 SCOPE=3
# seconds: 100
# order: 35
import os
import signal

from common import (AS, check, configure, daemon, doctor_checks, document, dormouse, eventually, finish, hibernate,
                    journal, note, ready, run, state, systemctl, unit)
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
found = doctor_checks()
check("doctor: tracing a worker", found["ptrace"]["result"] == ("works" if traces else "missing"), found["ptrace"])
check("doctor: tracing after a restart", found["ptrace-after-restart"]["result"] == (
    "works" if strangers else "limited" if traces else "missing"), found["ptrace-after-restart"])
check("doctor: hibernation as a whole", (found["hibernation"]["result"] == "works") == traces, found["hibernation"])

if not traces:
    for name in PORTS:
        done = dormouse("hibernate", name)
        check(f"{name} isn't hibernated, and the answer says why", done.code == 1 and len(done.text) > 20, f"{done.code}: {done.text}")
        note(done.text)
    clients.check_all("after the refusals")
    for name in PORTS:
        done = dormouse("suspend", name)
        check(f"{name} isn't suspended, because nothing could wake it", done.code == 1 and "nothing else would wake it" in done.text, done.text)
    clients.check_all("after a refused suspension")
    dormouse("run", "deaf", "--", "sleep", "100000")
    check("a worker without inputs is suspended", dormouse("suspend", "deaf").code == 0 and state("deaf") == "suspended", dormouse("ps").text)
    check("and woken", dormouse("wake", "deaf").code == 0 and state("deaf") in ("background", "foreground"), dormouse("ps").text)
    verdict = document("doctor")["verdict"]
    check("doctor's verdict says so", verdict["code"] == "hibernation_missing" and "may not be suspended" in verdict["text"], verdict)
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
    check(f"after {how}: all five sleep on", all(state(n) == "hibernated" for n in PORTS), dormouse("ps").text)
    clients.check_all(f"after {how}")
    done = hibernate("redis")
    check(f"after {how}: a worker of the earlier daemon hibernates again", done.code == 0, done.text)
    check(f"after {how}: and answers", clients.ask("redis") is None)
    if not strangers:
        # A process that PostgreSQL has forked since can't be traced.
        rows, _, seen = clients.commit()
        check(f"after {how}: the open transaction commits", rows == seen, f"{seen}, expected {rows}")
        for name in PORTS:
            dormouse("restart", name)
        ready(*PORTS)
        clients = connected()
note(journal()[-800:])
finish()
