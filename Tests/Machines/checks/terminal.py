# check: dormouse wrap around a program in a terminal: keys, Ctrl-Z, Ctrl-C, a wrapped helper in a wrapped program
# as: demo
# seconds: 120
# order: 37
"""Types into a bash in tmux, in a login session of the user demo. The wrapper has put the program to sleep before each
key."""
import pathlib

from common import check, eventually, finish, note, run

log = pathlib.Path("/home/demo/terminal.log")
inner = pathlib.Path("/home/demo/inner.log")
for file in (log, inner):
    file.unlink(missing_ok=True)
session = ["systemd-run", "--quiet", "--collect", "--uid=demo", "-p", "PAMName=login", "-p", "WorkingDirectory=/home/demo",
           "--setenv=HOME=/home/demo"]


def tmux(*words):
    return run("tmux", "-L", "keys", *words, user="demo").text


def screen():
    return tmux("capture-pane", "-p", "-t", "keys")


def keys(*words):
    for word in words:
        named = word in ("Enter",) or word.startswith("C-")
        tmux("send-keys", "-t", "keys", *([word] if named else ["-l", word]))


def shows(text):
    return bool(eventually(lambda: text in screen(), 30, 0.5))


def sleeps(file=log):
    def is_asleep():
        lines = file.read_text().strip().split("\n") if file.exists() else [""]
        return "→ hibernated" in lines[-1]
    return bool(eventually(is_asleep, 60, 0.5))


started = run(*session, "-p", "Type=forking", "/usr/bin/tmux", "-L", "keys", "new-session", "-d", "-s", "keys", "-x", "80",
              "-y", "24", "bash --norc", user="root")
check("a shell runs in tmux", started.code == 0, started.text)
wrap = "dormouse wrap --idle-after 2s --hibernate-after 1s --log"
keys(f"{wrap} {log} -- python3 -q", "Enter")
check("Python's prompt is there", shows(">>>"), screen())
keys("x = 1234; big = [str(i) * 3 for i in range(60000)]", "Enter")
check("it hibernates", sleeps(), log.read_text() if log.exists() else "no log")
keys("x * 2", "Enter")
check("it answers with its memory, and no key is lost or doubled", shows("2468") and ">>> x * 2" in screen(), screen())
check("it hibernates again", sleeps(), log.read_text())
keys("C-z")
check("Ctrl-Z stops it", shows("Stopped"), screen())
keys("fg", "Enter", "len(big) + 1", "Enter")
check("fg continues it", shows("60001"), screen())
check("it hibernates after fg", sleeps(), log.read_text())
keys("C-c")
check("Ctrl-C reaches it", shows("KeyboardInterrupt"), screen())
keys("C-d")
keys("echo ended $?", "Enter")
check("Ctrl-D ends it, with its exit code", shows("ended 0"), screen())
note(log.read_text())

log.unlink()
keys("clear", "Enter")
helper = "python3 -uc 'import sys; big = [str(i) * 3 for i in range(60000)]; [print(len(big), l.strip()) for l in sys.stdin]'"
pathlib.Path("/home/demo/helper.sh").write_text(f"exec {wrap} {inner} -- {helper}\n")
keys(f"{wrap} {log} -- python3 -q", "Enter")
check("Python's prompt is there again", shows(">>>"), screen())
keys("import subprocess as s; h = s.Popen(['sh', 'helper.sh'], stdin=-1, stdout=-1, text=True)", "Enter")
check("the wrapped helper hibernates", sleeps(inner), inner.read_text() if inner.exists() else "no log")
check("the wrapped program that started it, too", sleeps(), log.read_text())
keys("h.stdin.write('hello\\n'); h.stdin.flush(); h.stdout.readline()", "Enter")
check("both answer with their memory", shows("60000 hello"), screen())
keys("h.stdin.close(); h.wait() + 40", "Enter")
check("the helper ends", shows("40\n"), screen())
keys("C-d")
keys("echo ended $?", "Enter")
check("the program ends", shows("ended 0"), screen())
note(log.read_text())
tmux("kill-server")
finish()
