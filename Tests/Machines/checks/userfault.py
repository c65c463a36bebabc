# check: the service for userfaultfd: a user in the group dormouse trims without swap and resumes lazily, another doesn't
# as: demo
# each: SCOPE=0 SCOPE=1
# seconds: 150
# order: 36
import os
import signal

from common import (AS, anonymous, be_patient, check, configure, daemon, doctor_checks, document, dormouse, eventually,
                    finish, hibernate, note, processes, ready, run, skip, systemctl, unit, workers)
from services import PORTS, configuration, connected

SOCKET = "/run/dormouse-userfault.sock"
if not os.path.exists("/dev/userfaultfd"):
    skip("this kernel has no /dev/userfaultfd")
uid = run("id", "-u").text
SCOPE = os.environ["SCOPE"]
run("sysctl", "-qw", f"kernel.yama.ptrace_scope={SCOPE}", user="root")


def found():
    return doctor_checks().get("userfaultfd", {})


def root(*command):
    done = run(*command, user="root", seconds=90)
    check(" ".join(command), done.code == 0, done.text)
    return done.text


def service(key):
    return run("systemctl", "show", "-P", key, "dormouse-userfault.service", user="root").text


configure(configuration().replace(
    "policy_overrides:\n", "policy_overrides:\n  trim: { mechanism: userfaultfd, min_gain: 0B }\n"))
ready(*PORTS)
check("the package's socket belongs to root and the group dormouse", run("stat", "-c", "%U %G %a", SOCKET, user="root").text
      == "root dormouse 660", run("stat", "-c", "%U %G %a", SOCKET, user="root").text)
check("the group has no members", run("getent", "group", "dormouse", user="root").text.endswith(":"))
check("the service wasn't started by a user that may not use it", service("ExecMainStartTimestamp") == "")
refused = dormouse("trim", "python")
check("a user that isn't in the group is refused, with what to do", refused.code == 1 and "adduser" in refused.text, refused.text)
check("doctor says so", found().get("result") == "missing" and "dormouse-userfault" in found().get("enable", ""), found())

root("usermod", "-aG", "dormouse", AS)
root("systemctl", "restart", f"user@{uid}.service")
be_patient()
systemctl("restart", "dormouse")
ready(*PORTS)
clients = connected()
check("doctor finds the service", found().get("result") == "works", found())
note(found().get("found"))


def resident(name):
    return sum(anonymous(pid) for pid in processes(name))


for name in ("python", "node", "redis"):
    before, size = processes(name), resident(name)
    done = dormouse("trim", name)
    note(done.text)
    check(f"{name} is trimmed", done.code == 0 and resident(name) < size * 3 // 4, f"{done.text}; {resident(name)} KB of {size}")
    clients.check(name, "trimmed")
    # What it needs for the answer is in RAM again.
    missing = workers()[name].get("trim", {}).get("swapped", 0)
    old = daemon()
    os.kill(old, signal.SIGKILL)
    check("after kill -9 another daemon runs", eventually(lambda: daemon() not in (0, old) and document("ps"), 40, 1),
          unit("ActiveState"))
    check(f"{name} stays trimmed", eventually(lambda: workers()[name].get("trim", {}).get("swapped", 0) >= missing // 2),
          workers()[name].get("trim"))
    clients.check(name, "under the next daemon")
    check(f"{name} is filled", dormouse("fill", name).code == 0)
    clients.check(name, "filled")
    check(f"{name} is the same process", processes(name) == before)
    hibernate(name)
    status = dormouse("status", name).text
    check(f"{name} will be resumed lazily", "lazily" in status, status)
    clients.check(name, "resumed")
check("the service ran, and ends after a minute", eventually(lambda: service("ActiveState") == "inactive", 100, 2),
      service("ActiveState"))
note(run("systemd-analyze", "security", "--no-pager", "dormouse-userfault.service", user="root").text.splitlines()[-1:])

# Nothing of it is left for the next check.
root("gpasswd", "-d", AS, "dormouse")
root("systemctl", "restart", f"user@{uid}.service")
finish()
