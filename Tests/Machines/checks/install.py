# check: the commands of docs/install.md as printed: the package, the tarball for the machine and for one user; upgrade, removal
# as: demo
# each: PART=package PART=machine PART=user
# start: booted
# seconds: 120
# order: 16
"""The user demo, which has sudo, runs the page's blocks in a directory that looks like a checkout."""
import glob
import json
import os
import pathlib
import re
import shutil

from common import PACKAGE, check, eventually, finish, note, run, skip

PART = os.environ["PART"]
CHECKOUT = pathlib.Path("/home/demo/checkout")
PACKAGES = CHECKOUT / ".build/packages"
TARBALL = next(iter(glob.glob("/opt/machine/dormouse-*-linux-*.tar.xz")), None)
if PART != "package" and TARBALL is None:
    skip("there is no tarball beside the package (make dist)")
PACKAGES.mkdir(parents=True)
shutil.chown(CHECKOUT, "demo")
if PART == "package":
    shutil.copy(PACKAGE, PACKAGES / "dormouse_0.1.0-1_amd64.deb")
else:
    shutil.copy(TARBALL, PACKAGES)
    if shutil.which("xz") is None:
        note("there is no xz; Python's takes its place")
        shim = pathlib.Path("/usr/local/bin/xz")
        shim.write_text("#!/usr/bin/python3\nimport lzma, shutil, sys\n"
                        "shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)\n")
        shim.chmod(0o755)


def blocks(section, subsection=None):
    """The commands in each block of a section of the page, without `make`, whose results are there."""
    found, place, lines = [], (None, None), None
    for line in pathlib.Path("/opt/machine/install.md").read_text().splitlines():
        if lines is None and (heading := re.fullmatch("(##|###) (.*)", line)):
            place = (heading[2], None) if heading[1] == "##" else (place[0], heading[2])
        elif line.startswith("```"):
            if lines is not None and place == (section, subsection):
                found.append("\n".join(l for l in lines if not l.startswith("make ")))
            lines = [] if lines is None else None
        elif lines is not None:
            lines.append(line)
    return found


def shell(text, command, user="demo"):
    """As in a login shell; the answer to apt's question is yes."""
    done = run("bash", "-lec", f"cd {CHECKOUT}\n{command}", user=user, seconds=100, input="y\n")
    check(f"{text} succeeds", done.code == 0, done.text[-600:])
    note(command)
    return done


def answers():
    return run("curl", "-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:8080/").text == "200"


OWNER = "root" if PART == "machine" else "demo"


def status():
    done = run("bash", "-lc", "dormouse status web --json", user=OWNER)
    try:
        return json.loads(done.text.splitlines()[-1])
    except (ValueError, IndexError):
        return {}


def unit(manager, key):
    return run("systemctl", *(["--user"] if manager == "demo" else []), "show", "-P", key, "dormouse", user=manager).text


def runs(manager):
    return eventually(lambda: unit(manager, "ActiveState") == "active", 30)


def asleep():
    """The worker's process, hibernated."""
    check("the worker answers", eventually(answers, 60, 1))
    slept = eventually(lambda: run("bash", "-lc", "dormouse hibernate web", user=OWNER).code == 0, 30, 2)
    check("the worker hibernates", slept and status().get("state") == "hibernated", status())
    return status().get("pid")


def upgraded(pid, old):
    check("another daemon runs", runs(OWNER) and unit(OWNER, "MainPID") not in ("0", old), unit(OWNER, "MainPID"))
    check("the worker sleeps on", eventually(lambda: status().get("state") == "hibernated", 30), status())
    check("it answers, the same process", answers() and status().get("pid") == pid, status())


def nothing(*places):
    left = [p for place in places for p in pathlib.Path(place).rglob("*") if "dormouse" in p.name and p.is_file()]
    check("no file of it is left", not left, left)


check("there is no dormouse before", run("bash", "-lc", "command -v dormouse", user="demo").code != 0)
if PART == "package":
    install, user = blocks("Debian and Ubuntu")
    shell("installing", install)
    check("the machine's service runs", runs("root"))
    shell("the user's daemon", user)
    check("the user's service runs", runs("demo"))
    pid, old = asleep(), unit("demo", "MainPID")
    machine = unit("root", "MainPID")
    # The same package with a higher number.
    done = run("bash", "-ec", f"cd /tmp; dpkg-deb -R {PACKAGE} newer; sed -i 's/^Version: .*/Version: 0.1.0-2/' newer/DEBIAN/control;"
               f"rm {PACKAGES}/*.deb; dpkg-deb -Znone -b newer {PACKAGES}/dormouse_0.1.0-2_amd64.deb; rm -r newer", user="root", seconds=60)
    check("a newer package is made", done.code == 0, done.text)
    shell("the upgrade", install)
    check("the newer version is installed", run("dpkg-query", "-W", "-f", "${Version}", "dormouse").text == "0.1.0-2")
    check("another daemon of the machine runs", runs("root") and unit("root", "MainPID") not in ("0", machine))
    check("the user's daemon runs on", unit("demo", "MainPID") == old)
    for block in blocks("Debian and Ubuntu", "Upgrade"):
        shell("the user's upgrade", block)
    upgraded(pid, old)
    asleep()
    remove = blocks("Debian and Ubuntu", "Remove")[0].splitlines()
    shell("the removal", remove[0])
    check("the worker was woken, and runs on", answers() and os.path.exists(f"/proc/{pid}"))
    check("the configuration is kept", os.path.exists("/etc/dormouse/dormouse.yaml"))
    shell("purging", remove[1])
    nothing("/etc", "/usr", "/var/lib/dormouse")
else:
    place, where = ("/usr/local", "For the machine") if PART == "machine" else ("/home/demo/.local", "For one user")
    install, upgrade, remove = blocks("Other distributions", where)
    shell("installing", install)
    check("its service runs", runs(OWNER))
    check("it is started at boot", run("systemctl", *(["--user"] if OWNER == "demo" else []), "is-enabled", "dormouse", user=OWNER).text == "enabled")
    check("OnFailure= names a unit that is there",
          run("systemctl", *(["--user"] if OWNER == "demo" else []), "cat", "dormouse-recover", user=OWNER).code == 0)
    check("doctor: hibernation works", "works here" in run("bash", "-lc", "dormouse doctor", user=OWNER).text)
    check("the manual is found", run("bash", "-lc", f"test -s {place}/share/man/man1/dormouse.1", user=OWNER).code == 0)
    shell("a worker", ("sudo " if OWNER == "root" else "") + "dormouse run web -- python3 -m http.server 8080")
    pid, old = asleep(), unit(OWNER, "MainPID")
    shell("the upgrade", upgrade)
    upgraded(pid, old)
    asleep()
    shell("the removal", remove)
    check("the worker has ended", eventually(lambda: not os.path.exists(f"/proc/{pid}"), 20))
    check("no daemon is left", run("pgrep", "-x", "dormouse", user="root").text == "")
    check("the unit is not there any more", unit(OWNER, "LoadState") == "not-found", unit(OWNER, "LoadState"))
    nothing(place, "/home/demo/.config/systemd")
finish()
