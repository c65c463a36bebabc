# check: kill -9 of the daemon; OnFailure wakes workers when no daemon follows; an upgrade by hand
# as: root demo
# seconds: 150
# order: 30
import os
import signal
import time

from common import (AS, check, configure, daemon, document, dormouse, eventually, finish, hibernate, note, now, ready,
                    state, systemctl, unit)
from services import PORTS, configuration, connected

configure(configuration())
ready(*PORTS)
clients = connected()


def all_sleep(when):
    # A worker that has just answered may be woken once: whether the answer was the last word isn't always known.
    for _ in range(3):
        for name in PORTS:
            if state(name) != "hibernated":
                hibernate(name)
        time.sleep(0.5)
    check(f"all five are hibernated {when}", all(state(n) == "hibernated" for n in PORTS), dormouse("ps").text)


def another_daemon(old):
    return eventually(lambda: daemon() not in (0, old) and document("ps"), 40, 1)


all_sleep("before kill -9")
old = daemon()
os.kill(old, signal.SIGKILL)
check("after kill -9 another daemon runs", another_daemon(old), unit("ActiveState"))
check("after kill -9 all five sleep on", all(state(n) == "hibernated" for n in PORTS), dormouse("ps").text)
check("after kill -9 dormouse-recover was not started",
      unit("ActiveEnterTimestamp", "dormouse-recover.service") == ""
      and unit("ExecMainStartTimestamp", "dormouse-recover.service") == "", unit("ExecMainStartTimestamp", "dormouse-recover.service"))
clients.check_all("after kill -9")

# Some are awake and some asleep.
for name in ("python", "redis"):
    hibernate(name)
old = daemon()
os.kill(old, signal.SIGKILL)
check("after another kill -9 another daemon runs", another_daemon(old), unit("ActiveState"))
check("the sleeping ones sleep on", all(state(n) == "hibernated" for n in ("python", "redis")), dormouse("ps").text)
check("the running ones run on", all(state(n) in ("background", "foreground") for n in ("node", "nginx", "postgres")),
      dormouse("ps").text)
clients.check_all("after another kill -9")

all_sleep("before shutdown --keep-workers")
done = dormouse("shutdown", "--keep-workers")
note(done.text)
check("shutdown --keep-workers succeeds", done.code == 0, done.text)
eventually(lambda: unit("ActiveState") in ("inactive", "failed"), 20)
check("the unit is inactive, not failed", unit("ActiveState") == "inactive", unit("ActiveState"))
systemctl("start", "dormouse")
check("the next daemon has all five asleep", eventually(lambda: all(state(n) == "hibernated" for n in PORTS), 30, 1),
      dormouse("ps").text)
clients.check_all("after the upgrade")

# systemd gives up after StartLimitBurst starts: OnFailure= has to wake everything.
all_sleep("before the last daemon")
since = now()
for _ in range(12):
    pid = daemon()
    if pid:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    eventually(lambda: unit("ActiveState") == "failed" or daemon() not in (0, pid), 30, 0.2)
    if unit("ActiveState") == "failed":
        break
limited = unit("ActiveState") == "failed"
if not limited:
    # Emulation is too slow for five failures within ten seconds: here one is enough.
    place = "/run/systemd/system" if AS == "root" else "/run/systemd/user"
    os.makedirs(f"{place}/dormouse.service.d", exist_ok=True)
    with open(f"{place}/dormouse.service.d/check.conf", "w") as file:
        file.write("[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1\n")
    systemctl("daemon-reload")
    for _ in range(3):
        pid = daemon()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: unit("ActiveState") == "failed" or daemon() not in (0, pid), 30, 0.2)
        if limited := unit("ActiveState") == "failed":
            break
check("systemd gives the unit up after repeated crashes", limited, unit("ActiveState"))
check("dormouse-recover ran and succeeded",
      eventually(lambda: unit("ExecMainExitTimestamp", "dormouse-recover.service") != "", 40, 1)
      and unit("Result", "dormouse-recover.service") == "success", unit("Result", "dormouse-recover.service"))
clients.check_all("without a daemon, after dormouse-recover")
rows, hidden, seen = clients.commit()
check("PostgreSQL: the transaction that slept through it all commits its rows", seen == rows, f"{seen}, expected {rows}")
finish()
