# check: memory stalls: a trigger of the kernel's raises the pressure, and its end lowers it
# as: root demo
# seconds: 120
# order: 47
"""A program thrashes in a group with too little memory and swap. That is a stall of the whole machine as PSI counts it."""
import os
import pathlib
import re
import subprocess
import time

from common import (AS, check, configure, doctor_checks, document, dormouse, eventually, finish, journal, note, now,
                    ready, run, skip)

if not os.path.exists("/proc/pressure/memory"):
    skip("this kernel has no PSI, or it is off")
run("mkswap", "/dev/vdb", user="root")
run("swapon", "/dev/vdb", user="root")
configure("""policy: ios-5
policy_overrides:
  watchdog: { launch: 10m }
  background: { suspend_after: never }
  hibernate: { enabled: false }
  # Only stalls count here, in a window that each user may have.
  pressure: { warning: { stall: { some: 5%, window: 2s } }, urgent: never, critical: { available_below: 1MB }, clear_after: 3s }
workers:
  calm: { command: [sleep, "100000"] }
""")
ready("calm")


def level():
    return document("ps").get("daemon", {}).get("pressure")


def total():
    return int(re.search(r"some .*total=(\d+)", pathlib.Path("/proc/pressure/memory").read_text())[1])


check("the pressure is normal before", "normal" in str(level()), level())
found = doctor_checks()
fires = run("python3", "-c", "import os; f = os.open('/proc/pressure/memory', os.O_RDWR); os.write(f, b'some 200000 2000000\\0')").code == 0
note(f"{AS} {'may' if fires else 'may not'} set a trigger")
check("doctor says whether a trigger works", (found["psi-trigger"]["result"] == "works") == fires, found["psi-trigger"])
# The daemon's own descriptors: a trigger is an open /proc/pressure/memory.
pid = document("doctor")["daemon"]["pid"]
held = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
check(f"the daemon {'holds a trigger' if fires else 'has no trigger, and samples'}",
      any("pressure/memory" in h for h in held) == fires, [h for h in held if "pressure" in h])
time.sleep(10)
check("an idle machine raises no pressure", "normal" in str(level()), level())
since, before = now(), total()
thrash = subprocess.Popen(
    ["systemd-run", "--quiet", "--wait", "--collect", "-p", "MemoryMax=60M", "-p", "RuntimeMaxSec=90", "/usr/bin/python3", "-c",
     "import os, random\na = [bytearray(os.urandom(1 << 20)) for _ in range(120)]\n"
     "while True:\n b = random.choice(a)\n for o in range(0, 1 << 20, 4096): b[o] = 1"])
raised = eventually(lambda: any(w in str(level()) for w in ("warning", "critical")), 60, 0.5)
stalled = (total() - before) / 1e6
# The condition: 5 % of 2 s.
check("the kernel counted stalls of at least 0.1 s until then", stalled >= 0.1, f"{stalled:.3f} s")
note(f"stalled for {stalled:.3f} s until the pressure was raised")
check("the pressure was raised by them", raised, level())
events = dormouse("events", "--since", "10m").text
check("the event names the stall", re.search(r"normal → warning.*(stall|waited|wait)", events), events[-400:])
run("systemctl", "kill", "-s", "KILL", "run-*.service", user="root")
thrash.kill()
check("it falls when the stalls have ended", eventually(lambda: "normal" in str(level()), 40, 1), level())
note(dormouse("events", "--since", "10m").text[-600:])
note(journal(since)[-600:])
finish()
