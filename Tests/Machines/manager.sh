#!/bin/bash
# manager.sh EXECUTABLE [suspend|hibernate] [UNIT...]
#
# Runs inside a machine with systemd, as root. Adopts units, puts them to sleep, and has the service
# manager work on them: nothing may hang, crash or lose what was written. Each line ends in ok or FAIL.
DM=${1:?the executable}; CLIENT=${CLIENT:-$DM}; HOW=${2:-hibernate}; shift 2
UNITS=${*:-probe nginx redis-server postgresql}
export PATH=/usr/local/bin:$PATH; FAILED=0
LIMIT=${LIMIT:-40}

mkdir -p /etc/dormouse /run/systemd/system/dormouse.service.d
cat > /etc/dormouse/dormouse.yaml <<'P'
policy: ios-5
policy_overrides:
  watchdog: { launch: 5m }
  background: { suspend_after: never }
  pressure: { warning: never, urgent: never }
  hibernate: { after: never, cooldown: 0s, max_footprint: 128MB, min_footprint: 256KB, only_if_faster_than_relaunch: false }
P
printf '[Service]\nExecStart=\nExecStart=%s daemon\nExecReload=\nExecReload=%s reload\n' "$DM" "$DM" \
  > /run/systemd/system/dormouse.service.d/machine.conf
cat > /usr/local/bin/probe-server <<'P'
#!/usr/bin/python3
# Counts requests, reloads (SIGHUP) and what it was told to write; saves the count when it is ended.
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
systemctl daemon-reload

unit() { case $1 in postgresql) echo postgresql@$(ls /etc/postgresql | head -1)-main.service;; *) echo "$1.service";; esac; }
ask() {
  case $1 in
    probe) curl -s -m 20 http://127.0.0.1:7101/ | cut -d' ' -f3;;
    nginx) curl -s -m 20 -o /dev/null -w '%{http_code}' http://127.0.0.1/;;
    redis-server) timeout 20 redis-cli get key;;
    postgresql) timeout 30 su postgres -c "psql -Atc 'select v from machine_check'" 2>&1;;
  esac
}
right() { case $1 in probe) echo True;; nginx) echo 200;; *) echo "$MARK";; esac; }
write() {
  MARK=m$RANDOM
  case $1 in
    probe) curl -s -m 20 http://127.0.0.1:7101/ > /tmp/probe.visits;;
    redis-server) timeout 20 redis-cli set key $MARK > /dev/null;;
    postgresql) timeout 60 su postgres -c "psql -qAtc \"drop table if exists machine_check; create table machine_check as select '$MARK' v\"" > /dev/null 2>&1;;
  esac
}
state() { timeout 10 "$CLIENT" status "$1" --json 2>/dev/null | tr ',' '\n' | sed -n 's/.*"state" *: *"\([a-z]*\)".*/\1/p' | head -1; }
prepare() { # UNIT: runs, answers, holds a fresh write, is adopted and sleeps
  local u; u=$(unit "$1")
  systemctl reset-failed "$u" 2> /dev/null; systemctl start "$u"
  for _ in $(seq 60); do case $(ask "$1") in True|200|m*|""|*exist*) [ "$1" != probe ] && [ "$1" != nginx ] && break; [ -n "$(ask "$1")" ] && [ "$(ask "$1")" != 000 ] && break;; esac; sleep 0.5; done
  write "$1"
  timeout 20 "$CLIENT" release w > /dev/null 2>&1
  timeout 60 "$CLIENT" adopt w --unit "$u" > /tmp/adopt.out 2>&1 || { echo "  adopt: $(cat /tmp/adopt.out)"; return 1; }
  timeout 100 "$CLIENT" "$HOW" w > /tmp/how.out 2>&1 || { echo "  $HOW: $(cat /tmp/how.out)"; return 1; }
}
try() { # UNIT EXPECTED-ACTIVE COMMAND...
  local name=$1 expected=$2 u start took code answer active verdict=ok; shift 2; u=$(unit "$name")
  prepare "$name" || { echo "FAIL $name: can't be put to sleep"; FAILED=1; return; }
  dmesg -C
  local asleep; asleep=$(state w)
  ( for _ in $(seq $LIMIT); do sleep 1; [ -e /tmp/try.done ] && exit; done
    echo "  after $LIMIT s: PID 1 is $(awk '/^State/{print $2}' /proc/1/status) in $(cat /proc/1/wchan); it is woken by hand"
    timeout 20 "$CLIENT" wake w > /dev/null ) & local guard=$!
  rm -f /tmp/try.done; start=$(date +%s%N)
  timeout $((LIMIT * 3)) bash -c "$*" > /tmp/try.out 2>&1; code=$?
  took=$(( ($(date +%s%N) - start) / 1000000 )); touch /tmp/try.done; wait $guard
  sleep 1; active=$(systemctl is-active "$u")
  if [ "$active" = active ]; then
    # A unit that was just restarted may not listen yet.
    for _ in $(seq 20); do answer=$(ask "$name"); [ "$answer" = "$(right "$name")" ] && break; sleep 0.5; done
    [ "$answer" = "$(right "$name")" ] || verdict=FAIL
  else answer=-; fi
  [ "$active" = "$expected" ] && [ $took -lt $((LIMIT * 1000)) ] || verdict=FAIL
  local faults; faults=$(dmesg | grep -cE 'segfault|general protection|traps:'); [ "$faults" = 0 ] || verdict=FAIL
  if [ "$name" = probe ] && [ "$expected-$AFTER" = inactive-saved ]; then
    [ -s /var/tmp/probe.saved ] || verdict=FAIL; answer="saved $(cat /var/tmp/probe.saved 2>/dev/null)"; rm -f /var/tmp/probe.saved
  fi
  [ $verdict = ok ] || FAILED=1
  printf '%-4s %-12s %-34s was %s; rc %s, %s ms, unit %s, answer %s, crashes %s\n' \
    $verdict "$name" "$(echo "$*" | sed "s/$u/UNIT/g")" "$asleep" $code $took "$active" "$answer" "$faults"
}

"$CLIENT" --version; systemctl --version | head -1; uname -r
systemctl restart dormouse; for _ in $(seq 30); do timeout 5 "$CLIENT" ps > /dev/null 2>&1 && break; sleep 1; done
for name in $UNITS; do
  u=$(unit "$name")
  try "$name" active "systemctl reload $u"
  try "$name" active "systemctl restart $u"
  AFTER=saved try "$name" inactive "systemctl stop $u"
  if [ "$name" = probe ] || [ -n "$ALL" ]; then
    try "$name" active "systemctl daemon-reexec"
    try "$name" active "systemctl set-property --runtime $u CPUWeight=50"
    try "$name" active "systemctl freeze $u; sleep 1; systemctl thaw $u"
    try "$name" active "systemctl kill -s HUP --kill-whom=main $u"
    AFTER=saved try "$name" inactive "systemctl kill -s TERM $u; sleep 2"
    try "$name" failed "systemctl kill -s KILL $u; sleep 2"
  fi
  timeout 20 "$CLIENT" release w > /dev/null 2>&1; systemctl stop "$u" 2> /dev/null; systemctl reset-failed "$u" 2> /dev/null
done
exit $FAILED
