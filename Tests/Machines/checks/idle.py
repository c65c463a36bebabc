# check: ten idle minutes: no pressure, no termination, no restart, no warning in the log
# as: root demo
# seconds: 900
# order: 90
import time

from common import (PROGRAMS, anonymous, check, configure, daemon, dormouse, finish, journal, note, now, ready, state,
                    unit, workers)

# The shipped policy, as a new user has it.
configure(f"""policy: ios-5
policy_overrides: {{ watchdog: {{ launch: 10m }} }}
workers:
  one: {{ command: [python3, {PROGRAMS}/server.py, "8401"], readiness: {{ tcp: 8401 }} }}
  two: {{ command: [python3, {PROGRAMS}/server.py, "8402"], readiness: {{ tcp: 8402 }} }}
  cache: {{ command: [redis-server, --port, "8403", --save, ""], directory: /tmp, readiness: {{ tcp: 8403 }} }}
""")
ready("one", "two", "cache")
since, pid, pids = now(), daemon(), {n: w.get("pid") for n, w in workers().items()}
memory = []
for _ in range(20):
    time.sleep(30)
    memory.append({n: anonymous(p) for n, p in pids.items()})
check("the daemon is the same process", daemon() == pid, f"{pid}, then {daemon()}")
check("the unit was not restarted", unit("NRestarts") == "0", unit("NRestarts"))
check("each worker is the same process", {n: w.get("pid") for n, w in workers().items()} == pids, workers())
for name in pids:
    note(f"{name}: {', '.join(str(m[name]) for m in memory)} KB of anonymous memory in RAM, every 30 s")
text = dormouse("events", "--since", "11m").text
note(text)
check("pressure was never reported", not [l for l in text.splitlines() if "pressure " in l], text)
check("no worker was terminated", "→ terminated" not in text, text)
check("two of three workers sleep by the policy", sum(state(n) in ("suspended", "hibernated") for n in pids) == 2, dormouse("ps").text)
log = journal(since)
# Linux before 6.7 can't track writes, and the daemon says so once for each worker.
odd = [l for l in log.splitlines() if "this kernel can't track writes" not in l and any(w in l.lower() for w in ("fail", "error", "can't", "warning", "refused", "missing"))]
check("the log has no failure and no warning", not odd, odd)
note(f"{len(log.splitlines())} lines of log")
check("the log has fewer than 60 lines", len(log.splitlines()) < 60, len(log.splitlines()))
stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
note(f"the daemon used {(int(stat[11]) + int(stat[12])) / 100:.1f} s of processor time since its start")
finish()
