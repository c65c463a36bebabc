# check: a week of a schedule: the clock jumps, and a sleeping worker is woken once for each time
# as: root demo
# seconds: 240
# order: 60
import datetime
import os
import time

from common import CALM, PROGRAMS, check, configure, dormouse, eventually, finish, hibernate, note, ready, run, state

# Never back: what is past stays past, also for journald.
start = datetime.datetime(2027, 3, 1, 1, 0)  # a Monday


def clock(moment):
    run("date", "-s", moment.strftime("%Y-%m-%d %H:%M:%S"), user="root")


run("timedatectl", "set-ntp", "false", user="root")
os.environ["TZ"] = "UTC"
clock(start)
configure(CALM + f"""workers:
  nightly: {{ command: [python3, {PROGRAMS}/server.py, "8501"], readiness: {{ tcp: 8501 }}, wake_at: "0 3 * * mon-fri" }}
  never: {{ command: [python3, {PROGRAMS}/server.py, "8502"], readiness: {{ tcp: 8502 }}, wake_at: "30 12 24 12 *" }}
""")
ready("nightly", "never")
hibernate("never")
awake = ("background", "foreground")
for day in range(7):
    midnight = start + datetime.timedelta(days=day, hours=-1)
    done = hibernate("nightly")
    if not check(f"{midnight:%A}: it hibernates", done.code == 0, done.text):
        break
    # Just before its time it sleeps, and after it has been skipped it is woken.
    clock(midnight + datetime.timedelta(hours=2, minutes=57))
    time.sleep(5)
    check(f"{midnight:%A} 02:57: it sleeps", state("nightly") == "hibernated", dormouse("ps").text)
    clock(midnight + datetime.timedelta(hours=3, minutes=4))
    due = midnight.weekday() < 5
    woken = eventually(lambda: state("nightly") in awake, 75 / float(os.environ.get("PATIENCE", "1")) + 5, 2) if due else (
        time.sleep(70) or state("nightly") in awake)
    check(f"{midnight:%A} 03:04: it is {'woken' if due else 'left asleep'}", bool(woken) == due, dormouse("ps").text)
    if woken:
        answer = run("curl", "-s", "-m", "60", "http://127.0.0.1:8501/").text
        check(f"{midnight:%A}: it has its memory", answer.endswith(" intact"), answer)
    if day == 0:
        hibernate("nightly")
        time.sleep(65)
        check(f"{midnight:%A}: it is woken once only", state("nightly") == "hibernated", dormouse("ps").text)
    # The next day, before its time.
    clock(midnight + datetime.timedelta(days=1, hours=1))
    time.sleep(2)
check("a schedule of another time wakes nothing", state("never") == "hibernated", dormouse("ps").text)
clock(start - datetime.timedelta(hours=12) + datetime.timedelta(days=7))
time.sleep(65)
check("a clock that is set back wakes nothing", state("nightly") == state("never") == "hibernated", dormouse("ps").text)
note(dormouse("events", "--lines", "40").text)
finish()
