# check: an orderly reboot, and a power cut, with sleeping workers; nothing is left, and all start again
# as: root demo
# each: KIND=reboot KIND=cut
# seconds: 150
# order: 40
import os
import pathlib

from common import (AS, CALM, KEEP, PHASE, PROGRAMS, STATE, check, configure, cut_power, eventually, finish, hibernate,
                    journal, note, ready, reboot, run, systemctl, unit)

KIND = os.environ["KIND"]
# redis writes at its orderly end, as `save` says.
data = pathlib.Path(f"/var/lib/machine-redis-{AS}")
WORKERS = ("python", "redis")
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")


def redis(*arguments):
    return run("redis-cli", "-p", "8203", *arguments, seconds=20).text


if PHASE == 1:
    data.mkdir(exist_ok=True)
    os.chown(data, *([0, 0] if AS == "root" else [1000, 1000]))
    configure(CALM + f"""workers:
  python: {{ command: [python3, {PROGRAMS}/server.py, "8201"], readiness: {{ tcp: 8201 }} }}
  redis: {{ command: [redis-server, --port, "8203", --dir, {data}, --save, "3600 1", --appendonly, "no"], readiness: {{ tcp: 8203 }} }}
""")
    check("the service starts at boot", systemctl("enable", "dormouse").code == 0)
    ready(*WORKERS)
    check("redis takes a write", redis("set", "key", "before") == "OK")
    if KIND == "cut":
        redis("save")
    check("redis takes another write", redis("set", "later", "unsaved") == "OK")
    for name in WORKERS:
        done = hibernate(name)
        check(f"{name} hibernates", done.code == 0, done.text)
    images = list((pathlib.Path(STATE) / "images").iterdir())
    check("there are images", len(images) >= 2, images)
    (KEEP / "images").write_text("\n".join(str(i) for i in images))
    (KEEP / "boot").write_text(BOOT.read_text())
    os.sync()
    (reboot if KIND == "reboot" else cut_power)()

check("the machine has booted again", BOOT.read_text() != (KEEP / "boot").read_text())
check("the service runs after the boot", eventually(lambda: unit("ActiveState") == "active", 60, 1), unit("ActiveState"))
ready(*WORKERS)
old = [i for i in (KEEP / "images").read_text().split() if os.path.exists(i)]
check("no image of the boot before is left", not old, old)
if KIND == "reboot":
    last = run("journalctl", "-b", "-1", "--no-pager", "-q", "-o", "cat", user="root").text
    check("redis, asleep at the reboot, was woken and saved its last write", redis("get", "later") == "unsaved", redis("get", "later"))
    which = [l for l in last.splitlines() if "dormouse.service" in l]
    check("the service was stopped in the orderly way",
          not any(w in l for l in which for w in ("timed out", "Killing", "Failed with result")), which[-5:])
else:
    check("redis has what it had saved", redis("get", "key") == "before", redis("get", "key"))
    check("redis doesn't have what only its memory had", redis("get", "later") in ("", "(nil)"), redis("get", "later"))
name = "python"
answer = run("curl", "-s", "-m", "60", "http://127.0.0.1:8201/").text
check("python was started again and answers", answer.endswith(" 1 intact"), answer)
done = hibernate(name)
check("it hibernates again", done.code == 0, done.text)
answer = run("curl", "-s", "-m", "60", "http://127.0.0.1:8201/").text
check("and wakes with its memory", answer.endswith(" 2 intact"), answer)
note(journal()[-600:])
finish()
