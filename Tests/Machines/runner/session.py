"""One machine: it boots, gets the package, and runs each check from a snapshot, so that none sees another's traces."""
import pathlib
import re
import shutil
import subprocess
import time

from . import guest as guests

# Exit statuses of a check; README.md describes them.
SKIPPED, REBOOT, POWER_CUT = 77, 90, 91
PLACE = "/opt/machine"
# Of the repository, for the check `peers`.
BENCHMARK = ("Benchmarks/peers.py", "Benchmarks/bench.py", "Benchmarks/Peers/*.py", "Examples/demo/ports.py")


def run(machine, image, cells, deb, accel, logs, here, table, keep):
    directory = logs / machine.name
    directory.mkdir(parents=True, exist_ok=True)
    if not image.has(machine.kernel):
        for cell in cells:
            table.add(machine, cell, "skipped", 0, "the mirror has no such kernel")
        return
    files = directory / "files.tar"
    subprocess.run(["tar", "-cf", str(files), "-C", str(pathlib.Path(deb).parent), *packages(pathlib.Path(deb))], check=True)
    guest = None
    try:
        guest = guests.Guest(directory, image.disk, image.kernel(machine.kernel), accel, files)
        began = time.monotonic()
        guest.start()
        guest.run(f"mkdir -p {PLACE} && tar -xf /dev/vdc -C {PLACE} && mv {PLACE}/*.deb {PLACE}/dormouse.deb", 60)
        upload(guest, here)
        _, facts = guest.run("uname -r; systemctl --version | head -1; cat /sys/fs/cgroup/cgroup.controllers", 120)
        table.machine(machine, time.monotonic() - began, facts.split("\n"))
        guest.save("booted")
        installed = False
        for cell in cells:
            if cell.start == "installed" and not installed:
                guest.restore("booted")
                code, text = guest.run(f"DEBIAN_FRONTEND=noninteractive apt-get install -y {PLACE}/dormouse.deb", 600)
                (directory / "install.log").write_text(text)
                if code != 0:
                    raise guests.GuestError(f"apt-get install failed: {text[-300:]}")
                guest.save("installed")
                installed = True
            guest.restore(cell.start)
            table.add(machine, cell, *attempt(guest, cell, accel, directory, here))
    except (guests.GuestError, subprocess.CalledProcessError, OSError) as error:
        table.add(machine, None, "FAIL", 0, str(error))
    finally:
        if guest is not None:
            guest.end(keep)
        files.unlink(missing_ok=True)


def packages(deb):
    """The package, and the tarball of `make dist` beside it if there is one, for the check of docs/install.md."""
    return [deb.name] + sorted(p.name for p in deb.parent.glob("dormouse-*-linux-*.tar.xz"))[-1:]


def upload(guest, here):
    for folder in ("checks", "programs"):
        for path in sorted((here / folder).iterdir()):
            if path.is_file():
                guest.put(f"{PLACE}/{folder}/{path.name}", path.read_bytes())
    root = here.parent.parent
    guest.put(f"{PLACE}/install.md", (root / "docs/install.md").read_bytes())
    for pattern in BENCHMARK:
        for path in sorted(root.glob(pattern)):
            guest.put(f"{PLACE}/benchmarks/{path.relative_to(root)}", path.read_bytes())


def attempt(guest, cell, accel, directory, here):
    """The verdict, the seconds, and a reason or a number of assertions."""
    log = directory / f"{cell.name}.log"
    began = time.monotonic()
    end = began + cell.seconds * accel.patience
    text, phase, code = "", 1, None
    with open(log, "w", buffering=1) as file:
        def write(part):
            nonlocal text
            text += part
            file.write(part)
        try:
            for name in ("common.py", "common.sh", cell.path.name):
                if (here / "checks" / name).exists():
                    guest.put(f"{PLACE}/checks/{name}", (here / "checks" / name).read_bytes())
            while True:
                boot = guest.run("cat /proc/sys/kernel/random/boot_id", 30)[1].strip()
                variables = " ".join([f"AS={cell.user}", f"PATIENCE={accel.patience:g}", f"PHASE={phase}", *cell.variables])
                interpreter = "python3 -B -u" if cell.path.suffix == ".py" else "bash"
                # The agent's own protection from the OOM killer isn't the check's.
                code, _ = guest.run(f"cd {PLACE}; echo 0 > /proc/$$/oom_score_adj; {variables} {interpreter} checks/{cell.path.name}",
                                    max(end - time.monotonic(), 1), write)
                if code not in (REBOOT, POWER_CUT):
                    break
                phase += 1
                if code == REBOOT:
                    guest.run("(sleep 1; systemctl reboot) > /dev/null 2>&1 &", 30)
                    guest.await_reboot(boot)
                else:
                    guest.cut_power()
                    guest.start()
            _, journal = guest.run("journalctl -b --no-pager -q -o short-precise -u dormouse --user-unit dormouse "
                                   "| tail -400; dmesg | tail -30", 120)
            (directory / f"{cell.name}.journal").write_text(journal)
        except guests.GuestError as error:
            write(f"FAIL: {error}\n")
    return verdict(code, text, time.monotonic() - began)


def verdict(code, text, seconds):
    lines = text.splitlines()
    failures = [line for line in lines if re.match(r"FAIL\b", line) or re.search(r": FAIL$", line)]
    passed = sum(1 for line in lines if re.search(r": ok$", line) or re.match(r"ok\b", line))
    if code == SKIPPED and not failures:
        return "skipped", seconds, lines[-1].removeprefix("skipped: ") if lines else "no reason given"
    if code == 124:
        failures.append("the time limit was over")
    if code != 0 and not failures:
        failures.append(f"exit status {code}")
    if not failures and not passed:
        failures.append("it asserted nothing")
    return ("FAIL", seconds, "; ".join(failures)) if failures else ("ok", seconds, f"{passed} assertions")
