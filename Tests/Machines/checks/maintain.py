# check: apt reinstalls adopted, hibernated redis and nginx (their postinst restarts them); logrotate signals them
# seconds: 150
# order: 38
import glob
import pathlib
import time

from common import CALM, check, configure, dormouse, eventually, finish, note, run, state

configure(CALM + "workers: {}\n")
for unit in ("redis-server", "nginx"):
    check(f"{unit} starts", run("systemctl", "enable", "--now", unit).code == 0)


def redis(*arguments):
    return run("redis-cli", *arguments, seconds=30).text


def web():
    return run("curl", "-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1/").text


def main(unit):
    return run("systemctl", "show", "-P", "MainPID", unit).text


def asleep(name, unit):
    done = dormouse("adopt", name, "--unit", f"{unit}.service")
    check(f"{unit} is adopted", done.code == 0, done.text)
    slept = eventually(lambda: dormouse("hibernate", name).code == 0, 20, 1)
    check(f"{unit} hibernates", slept and state(name) == "hibernated", dormouse("ps").text)


eventually(lambda: redis("ping") == "PONG", 30)
check("redis takes a write", redis("set", "key", "kept") == "OK")
check("nginx answers", eventually(lambda: web() == "200", 30), web())
asleep("cache", "redis-server")
asleep("web", "nginx")

# logrotate, as Debian configures it: nginx gets a signal and writes to a new file.
requests = pathlib.Path("/var/log/nginx/access.log")
inode = requests.stat().st_ino
began = time.monotonic()
done = run("logrotate", "--force", "/etc/logrotate.d/nginx", seconds=40)
check("logrotate of nginx succeeds", done.code == 0, done.text)
note(f"after {time.monotonic() - began:.1f} s")
check("nginx answers after logrotate", web() == "200", web())
check("nginx writes to the new file", eventually(lambda: requests.exists() and requests.stat().st_ino != inode and requests.stat().st_size > 0, 20),
      [str(p) for p in requests.parent.iterdir()])
log = pathlib.Path("/var/log/redis/redis-server.log")
done = run("logrotate", "--force", "/etc/logrotate.d/redis-server", seconds=40)
check("logrotate of redis succeeds", done.code == 0, done.text)
check("redis has its key after logrotate", redis("get", "key") == "kept", redis("get", "key"))

for name, unit, packages in (("cache", "redis-server", ["redis-server"]), ("web", "nginx", ["nginx"])):
    if state(name) != "hibernated":
        eventually(lambda: dormouse("hibernate", name).code == 0, 20, 1)
    check(f"{unit} is hibernated before apt", state(name) == "hibernated", dormouse("ps").text)
    old = main(unit)
    files = [f for p in packages for f in glob.glob(f"/var/cache/machine-packages/{p}*.deb")]
    began = time.monotonic()
    done = run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--reinstall", "--no-install-recommends", *files, seconds=120)
    check(f"apt installs {', '.join(packages)} again", done.code == 0, done.text[-500:])
    note(f"after {time.monotonic() - began:.1f} s; main process {old}, then {main(unit)}")
    check(f"{unit} is active", run("systemctl", "is-active", unit).text == "active")
    check(f"its postinst restarted or reloaded {unit}", main(unit) != old or unit == "nginx", f"{old}, then {main(unit)}")
    check(f"{unit} ended in the orderly way", not [l for l in run("journalctl", "-b", "-u", unit, "-o", "cat").text.splitlines()
          if any(w in l for w in ("code=killed", "code=dumped", "timed out", "Failed with result"))],
          run("journalctl", "-b", "-u", unit, "-o", "cat").text[-400:])
check("redis has its key after the reinstallation", eventually(lambda: redis("get", "key") == "kept", 30), redis("get", "key"))
check("nginx answers after the reinstallation", eventually(lambda: web() == "200", 30), web())
check("no crash", not [l for l in run("dmesg").text.splitlines() if "segfault" in l or "general protection" in l])
finish()
