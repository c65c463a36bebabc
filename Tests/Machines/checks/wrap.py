# check: dormouse wrap in a login session and in tmux, without a daemon and beside one
# as: demo
# each: PLACE=login PLACE=tmux PLACE=daemon
# seconds: 90
# order: 36
"""A host with a helper at pipes, as the user demo. `login`: in a session of PAM's; `tmux`: in a window of it."""
import os
import pathlib
import pwd

from common import areas, check, eventually, finish, note, run
import json

PLACE = os.environ["PLACE"]
result = pathlib.Path("/home/demo/host.out")
host = pathlib.Path("/home/demo/host.py")
host.write_text('''
import json, os, pathlib, subprocess, sys, time
patience = float(sys.argv[1])
helper = """
import os, sys
memory, count = [str(i) * 3 for i in range(60000)], 0
for line in sys.stdin:
    count += 1
    print(os.getpid(), count, line.strip(), sum(map(len, memory)), flush=True)
"""
log = pathlib.Path.home() / "wrap.log"
log.unlink(missing_ok=True)
process = subprocess.Popen(["dormouse", "wrap", "--idle-after", "2s", "--hibernate-after", "1s", "--log", str(log), "--",
                            "python3", "-c", helper], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
out = {"answers": [], "asleep": [], "groups": open("/proc/self/cgroup").read().strip()}
def ask(text):
    process.stdin.write(text + "\\n"); process.stdin.flush()
    out["answers"].append(process.stdout.readline().strip())
def resident(pid):
    try: return next(int(l.split()[1]) for l in open(f"/proc/{pid}/smaps_rollup") if l.startswith("Anonymous:"))
    except (OSError, StopIteration): return -1
for turn in range(3):
    ask(f"turn{turn}")
    pid = int(out["answers"][-1].split()[0])
    awake, end = resident(pid), time.monotonic() + 25 * patience
    while resident(pid) > 256 and time.monotonic() < end: time.sleep(0.3)
    out["asleep"].append([awake, resident(pid)])
    if out["asleep"][-1][1] > 256: out["smaps"] = open(f"/proc/{pid}/smaps").read()
    if turn == 0:
        out["ps"] = subprocess.run(["dormouse", "ps"], capture_output=True, text=True).stdout
ask("last")
process.stdin.close()
out["code"] = process.wait(30 * patience)
out["log"] = log.read_text() if log.exists() else ""
out["left"] = subprocess.run(["pgrep", "-u", str(os.getuid()), "-f", "memory, count"], capture_output=True, text=True).stdout.split()
new = pathlib.Path.home() / "host.new"
new.write_text(json.dumps(out)); new.rename(pathlib.Path.home() / "host.out")
''')
owner = pwd.getpwnam("demo")
os.chown(host, owner.pw_uid, owner.pw_gid)
result.unlink(missing_ok=True)
patience = float(os.environ.get("PATIENCE", "1"))
command = f"python3 /home/demo/host.py {patience:g}"
if PLACE == "daemon":
    run("systemctl", "--user", "start", "dormouse", user="demo")
    check("the user's daemon runs", run("dormouse", "ps", user="demo").code == 0)
# A session of logind's, as a login at a terminal or by ssh has.
session = ["systemd-run", "--quiet", "--collect", "--uid=demo", "-p", "PAMName=login", "-p", "WorkingDirectory=/home/demo",
           "-p", "StandardError=file:/tmp/host.err", "--setenv=HOME=/home/demo"]
if PLACE == "tmux":
    started = run(*session, "-p", "Type=forking", "/usr/bin/tmux", "new-session", "-d", "-s", "work", command, user="root")
else:
    started = run(*session, "/bin/bash", "-lc", command, user="root")
check(f"the host starts in {PLACE}", started.code == 0, started.text)
found = eventually(result.exists, 80, 1)
if not check("the host ends", found, pathlib.Path("/tmp/host.err").read_text()[-500:] if os.path.exists("/tmp/host.err") else
             run("ps", "-u", "demo", "-o", "pid,stat,args", user="root").text):
    finish()
out = json.loads(result.read_text())
note(f"cgroup of the host: {out['groups']}")
note(out["log"])
check("it runs in a session of the user", "session" in out["groups"] or "user@1000" in out["groups"], out["groups"])
pids = {a.split()[0] for a in out["answers"]}
check("all answers are from one process", len(pids) == 1 and len(out["answers"]) == 4, out["answers"])
check("with its memory, in order", [a.split()[1:3] for a in out["answers"]] == [["1", "turn0"], ["2", "turn1"], ["3", "turn2"], ["4", "last"]]
      and len({a.split()[3] for a in out["answers"]}) == 1, out["answers"])
for turn, (awake, asleep) in enumerate(out["asleep"], 1):
    check(f"its memory left RAM, sleep {turn}", 0 <= asleep <= 256 < awake, f"{awake} KB awake, {asleep} KB asleep")
note("\n".join(areas(out.get("smaps", ""))))
check("its exit code is the helper's", out["code"] == 0, out["code"])
check("no process is left", not out["left"], out["left"])
left = [p for place in (pathlib.Path("/home/demo/.local/state/dormouse"),) if place.exists() for p in place.rglob("*image*") if p.is_file()]
check("no image is left", not left, left)
if PLACE == "daemon":
    check("the daemon lists it", "python3-" in out["ps"], out["ps"])
finish()
