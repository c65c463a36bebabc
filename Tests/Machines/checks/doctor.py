# check: each sentence of doctor is true: of the daemon, of the shell, and what it recommends works
# as: root demo
# seconds: 60
# order: 10
import json
import os
import pathlib
import re

from common import (AS, STATE, check, configure, daemon, doctor_checks, document, dormouse, finish, note, run, status,
                    systemctl)

configure("policy: ios-5\nworkers: {}\n")
text = dormouse("doctor", "-v").text
note(text)
report = document("doctor")
checks = {c["id"]: c for c in report.get("checks", [])}
shell = {c["id"]: c for c in report.get("shell", {}).get("checks", [])}
release = tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
uid = 0 if AS == "root" else int(run("id", "-u").text)
pid = daemon()


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def capability(process, number):
    return bool(int(status(process, "CapEff") or "0", 16) >> number & 1)


SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYS_RESOURCE, IPC_LOCK = 19, 21, 23, 24, 14


def result(identifier, of=None):
    return (checks if of is None else of).get(identifier, {}).get("result")


def says(identifier, expected, of=None, where="the daemon's"):
    found = (checks if of is None else of).get(identifier, {})
    check(f"{where} {identifier} is {expected}", found.get("result") == expected, f"{found.get('result')}: {found.get('found')}")


# The head.
check("the daemon was asked", report.get("askedOf") == "daemon", report.get("askedOf"))
check("its pid is that of the unit", report.get("daemon", {}).get("pid") == pid, f"{report.get('daemon')}, unit: {pid}")
check("the kernel is the machine's", report.get("kernel") == os.uname().release, report.get("kernel"))
check("the user is the daemon's", report.get("user") == uid == report["daemon"]["user"], report.get("user"))
group = read(f"/proc/{pid}/cgroup").split("::")[1]
unit_group = "/sys/fs/cgroup" + group.rsplit("/", 1)[0]
check("the daemon's cgroup is in its unit's", report["daemon"].get("cgroup", "").startswith(unit_group),
      f"{report['daemon'].get('cgroup')}, the daemon is in {group}")
named = set(report["daemon"].get("capabilities", []))
effective = int(status(pid, "CapEff"), 16)
check("the number of its capabilities is that of /proc", len(named) == bin(effective).count("1"),
      f"{len(named)} named, CapEff {effective:x}")
check("sys_ptrace is named if the daemon has it", ("sys_ptrace" in named) == capability(pid, SYS_PTRACE), sorted(named))
check("the verdict: hibernation works", report["verdict"]["code"] == "hibernation_works", report["verdict"]["text"])
check("it counts its own table", re.search(r"\d+ of \d+ mechanisms work", dormouse("doctor").text).group(0).startswith(
    f"{sum(c['result'] == 'works' for c in checks.values())} of {len(checks)} "), dormouse("doctor").text[-300:])

# What the machine has decides what works.
root = AS == "root"
scope = int(read("/proc/sys/kernel/yama/ptrace_scope") or 0)
says("ptrace", "works")
says("ptrace-after-restart", "works" if scope == 0 or (root and scope < 3) else "limited")
check("it names Yama's scope", f"ptrace_scope is {scope}" in checks["ptrace-after-restart"]["found"],
      checks["ptrace-after-restart"]["found"])
says("suspend-seccomp", "works" if root else "missing")
# userfault.py tries the package's service.
says("userfaultfd", "works" if root else "missing")
says("pagemap-scan", "works" if release >= (6, 7) else "missing")
says("process-madvise-pageout", "works" if root else "missing")
says("process-madvise-self", "works" if release >= (6, 15) else "missing")
says("write-tracking", "works" if release >= (6, 7) else "missing")
for identifier in ("pidfd", "process-mrelease", "kcmp", "proc-mem", "process-vm", "cgroup", "clone-into-cgroup", "freezer",
                   "rest-protection", "wake", "latch", "meminfo", "state-directory", "control-socket", "libcrypto", "keyring",
                   "hibernation"):
    says(identifier, "works")
controllers = (read(f"{unit_group}/cgroup.controllers") or "").split()
says("cgroup-account", "works" if {"memory", "pids"} <= set(controllers) else "limited")
check("it counts memory where the unit has the controller", ("memory" in checks["cgroup-account"]["found"].split("; not")[0])
      == ("memory" in controllers), f"{checks['cgroup-account']['found']}; {controllers}")
psi = os.path.exists("/proc/pressure/memory")
says("psi", "works" if psi else "missing")
# As the same user, without the daemon's capabilities if it has none.
fires = run("python3", "-c", "import os; f = os.open('/proc/pressure/memory', os.O_RDWR); os.write(f, b'some 200000 2000000\\0')").code == 0
says("psi-trigger", "works" if fires else "missing")
if result("psi-trigger") == "works":
    check("it says which windows work", checks["psi-trigger"]["found"].endswith("2 s and of 1 s") == root, checks["psi-trigger"]["found"])
swaps = len(read("/proc/swaps").splitlines()) - 1
check("it says whether there is swap", ("none" in checks["swap"]["found"]) == (swaps == 0), checks["swap"]["found"])
reclaims = "memory" in controllers and release >= (5, 19)
# Root has userfaultfd in full, and a cgroup for each worker.
says("trim", "works" if root else "missing" if swaps == 0 else "works" if reclaims else "limited" if scope == 0 else "missing")
score = int(read(f"/proc/{pid}/oom_score_adj"))
says("oom-score", "works" if score <= -900 or root else "missing")
limit = [l.split()[3] for l in read(f"/proc/{pid}/limits").splitlines() if l.startswith("Max locked memory")][0]
says("mlockall", "works" if root or limit == "unlimited" else result("mlockall"))
note(f"locked memory is limited to {limit}, mlockall {result('mlockall')}: {checks['mlockall']['found']}")
check("images are where the daemon keeps them", checks["state-directory"]["found"].startswith(STATE), checks["state-directory"]["found"])
socket = "/run/dormouse/control.sock" if root else f"/run/user/{uid}/dormouse/control.sock"
check("the control socket is the one in use", socket in checks["control-socket"]["found"] and os.path.exists(socket),
      checks["control-socket"]["found"])
available = int([l.split()[1] for l in read("/proc/meminfo").splitlines() if l.startswith("MemTotal")][0]) / 1048576
check("the machine's memory is right", f"of {available:.1f} GB" in checks["meminfo"]["found"], checks["meminfo"]["found"])

# The shell, and the differences.
same = {i for i in checks if result(i) == result(i, shell)}
check("the differences are those of the two lists", set(report.get("differences", [])) == set(checks) - same,
      f"{report.get('differences')}, expected {set(checks) - same}")
alone = {c["id"]: c for c in document("doctor", "--shell").get("checks", [])}
check("doctor --shell has the same results as the daemon's comparison", all(result(i, alone) == result(i, shell) for i in alone),
      [i for i in alone if result(i, alone) != result(i, shell)])
check("nothing of doctor is left", not run("pgrep", "-f", "dormouse doctor", user="root").text
      and not list(pathlib.Path("/sys/fs/cgroup").rglob("*dormouse-doctor*"))
      and not list(pathlib.Path(STATE).glob("doctor-*")), list(pathlib.Path("/sys/fs/cgroup").rglob("*dormouse-doctor*")))


# What it recommends, tried.
def tried(identifier, before, what):
    """After a recommendation, a new daemon's doctor."""
    systemctl("restart", "dormouse")
    now = doctor_checks()
    check(f"as recommended, {what}: {identifier} was {before}, and works", now.get(identifier, {}).get("result") == "works",
          now.get(identifier))


if not root:
    if result("cgroup", shell) != "works":
        inside = run("systemd-run", "--user", "--pipe", "--wait", "-q", "-p", "Delegate=yes", "/usr/bin/dormouse", "doctor", "--shell")
        check("as recommended, a delegated unit of the user has a cgroup for each worker",
              inside.code == 0 and "a cgroup for each worker: missing" not in inside.text, inside.text)
    if scope == 0:
        run("sysctl", "-qw", "kernel.yama.ptrace_scope=1", user="root")
        one = doctor_checks()
        check("at Yama's scope 1, ptrace-after-restart is limited", one["ptrace-after-restart"]["result"] == "limited",
              one["ptrace-after-restart"])
        run("sysctl", "-qw", "kernel.yama.ptrace_scope=0", user="root")
        tried("ptrace-after-restart", "limited", "kernel.yama.ptrace_scope=0")
    if result("mlockall") != "works":
        place = pathlib.Path(f"/home/{AS}/.config/systemd/user/dormouse.service.d")
        run("mkdir", "-p", place)
        (place / "check.conf").write_text("[Service]\nLimitMEMLOCK=infinity\n")
        systemctl("daemon-reload")
        above = pathlib.Path("/run/systemd/system/user@.service.d")
        above.mkdir(exist_ok=True)
        (above / "check.conf").write_text("[Service]\nLimitMEMLOCK=infinity\n")
        run("systemctl", "daemon-reload", user="root")
        run("systemctl", "restart", f"user@{uid}", user="root", seconds=90)
        tried("mlockall", "missing", "LimitMEMLOCK=infinity in its unit and in user@.service")

    # In a unit of the system's manager with a capability.
    def with_capability(identifier, name, before):
        if before == "works":
            return
        done = run("systemd-run", "--pipe", "--wait", "-q", "--collect", "-p", f"User={AS}", "-p", "Delegate=yes", "-p",
                   f"AmbientCapabilities={name}", f"--setenv=XDG_RUNTIME_DIR=/run/user/{uid}", "/usr/bin/dormouse", "doctor",
                   "--shell", "--json", user="root")
        try:
            there = {c["id"]: c for c in json.loads(done.text.splitlines()[-1])["checks"]}.get(identifier, {})
        except (ValueError, IndexError, KeyError):
            there = {"found": done.text}
        check(f"as recommended, with {name}: {identifier} was {before}, and works", there.get("result") == "works", there.get("found"))

    with_capability("suspend-seccomp", "CAP_SYS_ADMIN", result("suspend-seccomp"))
    with_capability("process-madvise-pageout", "CAP_SYS_NICE", result("process-madvise-pageout"))
    with_capability("oom-score", "CAP_SYS_RESOURCE", result("oom-score"))
    with_capability("mlockall", "CAP_IPC_LOCK", result("mlockall"))
    run("sysctl", "-qw", "kernel.yama.ptrace_scope=1", user="root")
    with_capability("ptrace-after-restart", "CAP_SYS_PTRACE", "limited")
    refused = run("systemd-run", "--user", "--wait", "-q", "--collect", "-p", "AmbientCapabilities=CAP_SYS_PTRACE", "true")
    check("as it says, a user's own manager can't give a capability: status 218", refused.code == 218, f"{refused.code}: {refused.text}")
finish()
