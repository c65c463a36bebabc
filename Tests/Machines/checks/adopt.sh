#!/bin/bash
# check: what systemctl does to adopted units that sleep: probe, nginx, redis, PostgreSQL
# each: HOW=suspend HOW=hibernate
# seconds: 180
# order: 34
# HOW=suspend|hibernate|awake adopt.sh [UNIT...]
#
# Runs inside a machine with systemd, as root. Adopts units, puts them to sleep, and has the service
# manager work on them: no unit may hang, crash or lose written data. Each line ends in ok or FAIL.
# `awake` adopts nothing and runs no daemon: it measures what the same commands take without Dormouse.
# ONLY= is a regular expression: only commands that match it are run.
#
# While a command runs, the state of PID 1 is read 5 times a second: "PID 1 blocked" is its longest time
# in uninterruptible sleep.
CLIENT=/usr/bin/dormouse; HOW=${HOW:-hibernate}; PATIENCE_WHOLE=${PATIENCE%%.*}; PATIENCE_WHOLE=${PATIENCE_WHOLE:-1}
UNITS=${*:-probe nginx redis-server postgresql}
export PATH=/usr/local/bin:$PATH; FAILED=0
# Seconds after which a command counts as hung, and the worker is woken by hand.
[ "$PATIENCE_WHOLE" -gt 1 ] && LIMIT=${LIMIT:-100}
LIMIT=${LIMIT:-40}

mkdir -p /etc/dormouse
cat > /etc/dormouse/dormouse.yaml <<'P'
policy: ios-5
policy_overrides:
  watchdog: { launch: 5m }
  background: { suspend_after: never }
  pressure: { warning: never, urgent: never }
  hibernate: { after: never, cooldown: 0s, max_footprint: 128MB, min_footprint: 256KB, only_if_faster_than_relaunch: false }
P
cat > /usr/local/bin/probe-server <<'P'
#!/usr/bin/python3
# Counts requests and reloads (SIGHUP); saves the number of requests when it is ended.
import http.server, os, signal, sys
count = {"visits": 0, "reloads": 0}
heap = [bytes(str(i), "ascii") * 50 for i in range(20000)]
def save(*_):
    with open("/var/tmp/probe.saved", "w") as f: f.write(str(count["visits"]))
    os._exit(0)
def reload(*_): count["reloads"] += 1
signal.signal(signal.SIGTERM, save); signal.signal(signal.SIGHUP, reload)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count["visits"] += 1
        intact = all(heap[i].startswith(bytes(str(i), "ascii")) for i in range(20000))
        body = f"{count['visits']} {count['reloads']} {intact}\n".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", 7101), H).serve_forever()
P
chmod 755 /usr/local/bin/probe-server
cat > /run/systemd/system/probe.service <<'P'
[Service]
ExecStart=/usr/bin/python3 /usr/local/bin/probe-server
ExecReload=/bin/sh -c 'echo reloading; sleep 0.3; kill -HUP $MAINPID'
ExecStop=/bin/sh -c 'echo stopping; sleep 0.3'
TimeoutStopSec=60
P
# Debian gives nginx 5 s to stop, on hardware; in emulation the daemon's start alone takes 4 s.
mkdir -p /run/systemd/system/nginx.service.d
printf '[Service]\nTimeoutStopSec=%s\n' $((5 * PATIENCE_WHOLE)) > /run/systemd/system/nginx.service.d/machine.conf
systemctl daemon-reload

unit() { case $1 in postgresql) echo postgresql@$(ls /etc/postgresql | head -1)-main.service;; *) echo "$1.service";; esac; }
ask() {
  case $1 in
    probe) curl -s -m 20 http://127.0.0.1:7101/ | cut -d' ' -f3;;
    nginx) curl -s -m 20 -o /dev/null -w '%{http_code}' http://127.0.0.1/;;
    redis-server) timeout 20 redis-cli get key 2>&1;;
    postgresql) (cd /; timeout 60 su postgres -c "psql -Atc 'select v from machine_check'" 2>&1);;
  esac
}
right() { case $1 in probe) echo True;; nginx) echo 200;; *) echo "$MARK";; esac; }
write() {
  MARK=m$RANDOM
  case $1 in
    probe) curl -s -m 20 http://127.0.0.1:7101/ | cut -d' ' -f1 > /tmp/probe.visits;;
    redis-server) timeout 20 redis-cli set key $MARK;;
    postgresql) (cd /; timeout 60 su postgres -c "psql -qAtc \"drop table if exists machine_check; create table machine_check as select '$MARK' v\"");;
  esac > /tmp/write.out 2>&1 < /dev/null
}
# Waits until the unit answers; after a restart it may not listen yet, and emulation is slow.
answers() { # UNIT SECONDS
  local end=$((SECONDS + $2))
  while [ $SECONDS -lt $end ]; do [ "$(ask "$1")" = "$(right "$1")" ] && return; sleep 0.5; done
  return 1
}
writes() { # UNIT SECONDS: it takes a write and gives it back
  local end=$((SECONDS + $2))
  while [ $SECONDS -lt $end ]; do write "$1"; [ "$(ask "$1")" = "$(right "$1")" ] && return; sleep 0.5; done
  return 1
}
state() { timeout 10 "$CLIENT" status "$1" --json 2>/dev/null | tr ',' '\n' | sed -n 's/.*"state" *: *"\([a-z]*\)".*/\1/p' | head -1; }
prepare() { # UNIT: runs, answers, holds a fresh write, is adopted and sleeps
  local u; u=$(unit "$1")
  systemctl reset-failed "$u" 2> /dev/null; systemctl start "$u"
  writes "$1" 90 || { echo "  it takes no write: $(cat /tmp/write.out; ask "$1")"; return 1; }
  rm -f /var/tmp/probe.saved
  [ "$HOW" = awake ] && return
  timeout 60 "$CLIENT" release w > /dev/null 2>&1
  timeout 60 "$CLIENT" adopt w --unit "$u" > /tmp/adopt.out 2>&1 || { echo "  adopt: $(cat /tmp/adopt.out)"; return 1; }
  # What the unit has just started may still be busy.
  for _ in 1 2 3; do timeout 100 "$CLIENT" "$HOW" w > /tmp/how.out 2>&1 && return; sleep 2; done
  echo "  $HOW: $(cat /tmp/how.out)"; return 1
}
exec {never}<> <(:)  # it never gets data, and so is a sleep without a new process
# The longest time that PID 1 was in uninterruptible sleep, in ms, until /tmp/try.done exists.
watchPID1() {
  local state rest now since= longest=0
  while [ ! -e /tmp/try.done ]; do
    read -r _ _ state rest < /proc/1/stat; now=${EPOCHREALTIME/./}
    if [ "$state" = D ]; then
      since=${since:-$now}; [ $(((now - since) / 1000)) -gt $longest ] && longest=$(((now - since) / 1000))
    else since=; fi
    read -rt 0.2 -u $never
  done
  echo $longest > /tmp/try.blocked
}
try() { # UNIT EXPECTED-ACTIVE COMMAND...
  local name=$1 expected=$2 u start took code answer active verdict=ok asleep=awake blocked; shift 2; u=$(unit "$name")
  [[ "$*" =~ $ONLY ]] || return
  prepare "$name" || { echo "FAIL $name: can't be put to sleep for: $*"; FAILED=1; return; }
  dmesg -C; rm -f /tmp/try.done; local began; began=$(date '+%Y-%m-%d %H:%M:%S')
  [ "$HOW" = awake ] || asleep=$(state w)
  watchPID1 & local watcher=$!
  ( for _ in $(seq $LIMIT); do sleep 1; [ -e /tmp/try.done ] && exit; done
    echo "  after $LIMIT s: PID 1 is $(awk '/^State/{print $2}' /proc/1/status) in $(cat /proc/1/wchan)"
    [ "$HOW" = awake ] || { echo "  it is woken by hand"; timeout 20 "$CLIENT" wake w > /dev/null; } ) & local guard=$!
  start=${EPOCHREALTIME/./}
  timeout $((LIMIT * 3)) bash -c "$*" > /tmp/try.out 2>&1; code=$?
  took=$(( (${EPOCHREALTIME/./} - start) / 1000 )); touch /tmp/try.done; wait $guard $watcher; blocked=$(cat /tmp/try.blocked)
  sleep 1; active=$(systemctl is-active "$u"); [ "$HOW" = awake ] || after=", then $(state w)"
  if [ "$active" = active ]; then
    if answers "$name" 60; then answer=right; else verdict=FAIL; answer="wrong ($(ask "$name"))"; fi
  elif [ "$name" = probe ] && [ "$expected" = inactive ]; then
    answer="saved $(cat /var/tmp/probe.saved 2>/dev/null)"
    [ "$(cat /var/tmp/probe.saved 2>/dev/null)" -ge "$(cat /tmp/probe.visits)" ] || verdict=FAIL
  elif [ "$expected" != active ] && [ "$expected" != failed ]; then
    # Started again, it must have what was written before.
    systemctl reset-failed "$u" 2> /dev/null; systemctl start "$u"
    if answers "$name" 60; then answer="right when started again"; else verdict=FAIL; answer="lost ($(ask "$name"))"; fi
  else answer=-; fi
  [ "$active" = "$expected" ] && [ $took -lt $((LIMIT * 1000)) ] && [ "$blocked" -lt 5000 ] || verdict=FAIL
  local faults; faults=$(dmesg | grep -cE 'segfault|general protection|traps:'); [ "$faults" = 0 ] || verdict=FAIL
  printf '%-4s %-12s %-42s was %s%s; rc %s, %s ms, PID 1 blocked %s ms, unit %s, answer %s, crashes %s\n' \
    $verdict "$name" "$(echo "$*" | sed "s/$u/UNIT/g")" "$asleep" "${after%, then }" $code $took "$blocked" "$active" "$answer" "$faults"
  [ $verdict = ok ] && return; FAILED=1
  sed 's/^/  output: /' /tmp/try.out | tail -3
  journalctl --no-pager -q -o short-precise --since "$began" -u "$u" -u dormouse | cut -c1-200 | sed 's/^/  /' | tail -15
}

echo "$("$CLIENT" --version), $(systemctl --version | head -1), Linux $(uname -r), $HOW"
if [ "$HOW" = awake ]; then systemctl stop dormouse 2> /dev/null; else
  systemctl reset-failed dormouse 2> /dev/null; systemctl restart dormouse
  for _ in $(seq 30); do timeout 5 "$CLIENT" ps > /dev/null 2>&1 && break; sleep 1; done
fi
for name in $UNITS; do
  u=$(unit "$name")
  try "$name" active "systemctl reload $u"
  try "$name" active "systemctl restart $u"
  try "$name" inactive "systemctl stop $u"
  if [ "$name" = probe ] || [ -n "$ALL" ]; then
    LIMIT=$((LIMIT * 4)) try "$name" active "systemctl daemon-reexec"
    try "$name" active "systemctl daemon-reload"
    try "$name" active "systemctl set-property --runtime $u CPUWeight=50"
    try "$name" active "systemctl freeze $u; sleep 1; systemctl thaw $u"
  fi
  case $name in probe | nginx) try "$name" active "systemctl kill -s HUP --kill-whom=main $u";; esac
  case $name in
    probe | nginx)
      try "$name" inactive "systemctl kill -s TERM $u; sleep 2"
      try "$name" failed "systemctl kill -s KILL $u; sleep 2";;
    redis-server) try "$name" active "systemctl kill -s TERM $u; sleep 2";;  # Debian has Restart=always
  esac
  if [ "$HOW" != awake ]; then
    # The daemon was killed before the manager's command. The next one finds the worker, and wakes it.
    try "$name" active "kill -9 \$(systemctl show -p MainPID --value dormouse); systemctl restart $u"
    try "$name" inactive "kill -9 \$(systemctl show -p MainPID --value dormouse); systemctl stop $u"
    timeout 60 "$CLIENT" release w > /dev/null 2>&1
  fi
  systemctl stop "$u" 2> /dev/null; systemctl reset-failed "$u" 2> /dev/null
done
exit $FAILED
