# check: the machine's memory is used up by a worker without a limit, and no worker has one: the kernel's kill is reported
# as: root demo
# seconds: 90
# order: 45
"""docs/systemd.md: ps, status and events show that the OOM killer ended a worker, also without `limits.memory`."""
import os
import signal

from common import check, configure, daemon, document, dormouse, eventually, finish, note, ready, run, state

configure("""policy: ios-5
policy_overrides: { watchdog: { launch: 10m }, background: { suspend_after: never }, pressure: { warning: never, urgent: never, critical: { available_below: 1KB } } }
workers:
  calm: { command: [sleep, "100000"] }
  hog:
    command: [python3, -c, "import time; time.sleep(3); x = []\\nwhile True: x.append(bytearray(8 << 20))"]
    autostart: false
    restart: { when: "no" }
""")
ready("calm")
calm, old = document("status", "calm").get("pid"), daemon()
run("dmesg", "-C", user="root")
started = dormouse("start", "hog")
check("the worker starts", started.code == 0, started.text)
# The daemon would end it sooner, because memory is critically short.
os.kill(old, signal.SIGSTOP)


def killed():
    return [l for l in run("dmesg", user="root").text.splitlines() if "Out of memory: Killed process" in l]


check("the kernel's OOM killer ends a process", eventually(killed, 60, 1))
os.kill(old, signal.SIGCONT)
note("\n".join(killed()))
check("it ends one, and that is the worker", len(killed()) == 1 and "python3" in killed()[0], killed())
eventually(lambda: state("hog") == "terminated", 20)
status = document("status", "hog")
check("status says that the OOM killer ended it", status.get("lastExit", {}).get("code") == "out_of_memory", status.get("lastExit"))
check("events say it, too", "OOM killer" in dormouse("events", "--worker", "hog").text, dormouse("events", "--worker", "hog").text[-300:])
check("jetsam has a report of it", "hog" in dormouse("jetsam").text, dormouse("jetsam").text[-300:])
check("the daemon survives", daemon() == old, f"{old}, then {daemon()}")
check("the other worker survives", document("status", "calm").get("pid") == calm, calm)
finish()
