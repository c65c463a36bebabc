"""What the checks share. They run inside a machine, as root; AS says whose daemon they are about.

A check prints a line for each assertion: `TEXT: ok` or `FAIL: TEXT (what was found)`."""
import json
import os
import pathlib
import pwd
import subprocess
import sys
import time

AS = os.environ.get("AS", "root")
PHASE = int(os.environ.get("PHASE", "1"))
# By how much deadlines are longer than on hardware.
PATIENCE = float(os.environ.get("PATIENCE", "1"))
PROGRAMS = "/opt/machine/programs"
PACKAGE = "/opt/machine/dormouse.deb"
CONFIGURATION = pathlib.Path("/etc/dormouse" if AS == "root" else f"/home/{AS}/.config/dormouse")
STATE = "/var/lib/dormouse" if AS == "root" else f"/home/{AS}/.local/state/dormouse"
# Stays over reboots.
KEEP = pathlib.Path("/var/lib/machine-check")
KEEP.mkdir(exist_ok=True)
failures = 0

# Sleep and memory only on request; emulation is slow.
CALM = """policy: ios-5
policy_overrides:
  watchdog: { launch: 10m }
  background: { suspend_after: never }
  pressure: { warning: never, urgent: never }
  hibernate: { after: never, cooldown: 0s, max_footprint: 256MB, min_footprint: 128KB, only_if_faster_than_relaunch: false }
"""


def check(text, holds, found=""):
    global failures
    if holds:
        print(f"{text}: ok", flush=True)
    else:
        failures += 1
        print(f"FAIL: {text} ({found})" if str(found) else f"FAIL: {text}", flush=True)
    return bool(holds)


def note(text):
    for line in str(text).strip().splitlines():
        print(f"  {line}", flush=True)


def finish():
    sys.exit(1 if failures else 0)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def reboot():
    """The machine reboots in the orderly way, and the check is run again in its next phase."""
    sys.exit(90)


def cut_power():
    """The machine loses its power at once, boots, and the check is run again in its next phase."""
    sys.stdout.flush()
    sys.exit(91)


def identity(user):
    """What subprocess needs to run something as the user, in the environment of its login."""
    if user == "root":
        return {"env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}, "cwd": "/"}
    entry = pwd.getpwnam(user)
    run = f"/run/user/{entry.pw_uid}"
    return {"user": user, "group": entry.pw_gid, "extra_groups": [], "cwd": entry.pw_dir, "env": {
        "PATH": "/usr/bin:/bin", "HOME": entry.pw_dir, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash",
        "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": run, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={run}/bus"}}


def run(*command, seconds=60, user=AS, input=None):
    """Runs a command; `.code`, and `.text` with all output. A command over its time has the code 124."""
    try:
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=seconds * PATIENCE, check=False, input=input,
                              stdin=None if input is not None else subprocess.DEVNULL, **identity(user))
        done.code, done.text = done.returncode, done.stdout.strip()
    except subprocess.TimeoutExpired as late:
        done = subprocess.CompletedProcess(command, 124)
        output = late.stdout or b""
        done.code, done.text = 124, (output.decode(errors="replace") if isinstance(output, bytes) else output) + " (too late)"
    return done


def dormouse(*arguments, seconds=60, user=AS):
    return run("/usr/bin/dormouse", *arguments, seconds=seconds, user=user)


def document(*arguments):
    """What a verb prints with --json, or {}."""
    done = dormouse(*arguments, "--json", seconds=20)
    try:
        return json.loads(done.text.splitlines()[0])
    except (ValueError, IndexError):
        return {}


def doctor_checks():
    """The checks of `doctor` by their ids."""
    return {c["id"]: c for c in document("doctor").get("checks", [])}


def systemctl(*arguments, seconds=90):
    return run("systemctl", *(() if AS == "root" else ("--user",)), *arguments, seconds=seconds)


def unit(key, name="dormouse.service"):
    return systemctl("show", "-P", key, name).text


def daemon():
    """The daemon's process."""
    return int(unit("MainPID") or 0)


def journal(since=None, unit_name="dormouse"):
    which = ["-u", unit_name] if AS == "root" else [f"_SYSTEMD_USER_UNIT={unit_name}.service"]
    return run("journalctl", "-b", "--no-pager", "-q", "-o", "cat", *which, *(["--since", since] if since else []),
               user="root").text


def now():
    return time.strftime("%Y-%m-%d %H:%M:%S")


def be_patient():
    """Lets workers stand still for longer in a trim: under emulation each takes longer than is permitted on hardware."""
    if PATIENCE > 1:
        systemctl("set-environment", f"DORMOUSE_TEST_STANDSTILL={PATIENCE * 2}")


def configure(text, start=True):
    """Writes the configuration, and starts the daemon with it."""
    be_patient()
    owner = pwd.getpwnam(AS)
    for folder in (CONFIGURATION.parent, CONFIGURATION):
        if not folder.exists():
            folder.mkdir()
            os.chown(folder, owner.pw_uid, owner.pw_gid)
    (CONFIGURATION / "dormouse.yaml").write_text(text)
    if start:
        systemctl("reset-failed", "dormouse")
        done = systemctl("restart", "dormouse")
        check("the service starts with its configuration", done.code == 0, done.text or journal()[-400:])


def eventually(condition, seconds=30, every=0.3):
    """Whether the condition held within this time (on hardware)."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            return value
        time.sleep(every)


def workers():
    """All workers by name, as `ps --json` has them."""
    return {w["name"]: w for w in document("ps").get("workers", [])}


def state(name):
    return workers().get(name, {}).get("state", "unknown")


def ready(*names, seconds=60):
    """Until these workers have been launched."""
    up = ("foreground", "background", "suspended", "hibernated")
    found = eventually(lambda: all(w.get("state") in up for w in [workers().get(n, {}) for n in names]), seconds, 1)
    return check(f"{', '.join(names)}: launched", found, dormouse("ps").text)


def processes(name):
    """The processes in a worker's cgroup."""
    return [int(p) for group in pathlib.Path("/sys/fs/cgroup").rglob(f"worker-{name}")
            for file in group.rglob("cgroup.procs") for p in file.read_text().split()]


def status(pid, key):
    """A line of /proc/PID/status; None if the process has ended."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith(key + ":"):
                return line.split(":", 1)[1].strip()
    except OSError:
        return None


def anonymous(pid):
    """The anonymous memory of a process in RAM, in KB; 0 if it has ended."""
    return rolled_up(pid, "Anonymous")


def rolled_up(pid, key):
    """A sum over the mappings of a process, in KB; 0 if it has ended. The pages are counted one by one: the kernel's own
    counters (RssAnon, VmSwap) can be wrong by up to 64 pages for each processor or thread."""
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith(key + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def areas(smaps):
    """The areas with anonymous memory in RAM, from the text of /proc/PID/smaps."""
    area, found = "", []
    for line in smaps.splitlines():
        if not line.split()[0].endswith(":"):
            area = line
        elif line.startswith("Anonymous:") and not line.endswith(" 0 kB"):
            found.append(f"{line.split()[1]} KB in {area}")
    return found


def hibernate(name, tries=4):
    """Hibernates; a worker that has just worked may be refused for a moment."""
    done = None
    for _ in range(tries):
        done = dormouse("hibernate", name, seconds=60)
        if done.code == 0:
            return done
        time.sleep(2)
    return done
