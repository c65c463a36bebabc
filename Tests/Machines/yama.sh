#!/bin/bash
# yama.sh EXECUTABLE SCOPE
#
# Runs inside a machine with systemd, as an ordinary user that may use sudo and has running user units. At
# kernel.yama.ptrace_scope SCOPE: workers of the user's unit are hibernated and answer; `kill -9` of the
# daemon, and an upgrade (`shutdown --keep-workers`), lose none of them, and each client gets its answer.
DM=${1:?the executable}; CLIENT=${CLIENT:-$DM}; SCOPE=${2:-1}; FAILED=0
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
cat > ~/server.py <<'P'
# server.py PORT: counts its visits, and has memory that checks itself.
import http.server, sys
count, heap = 0, [bytes(str(i), "ascii") * 40 for i in range(20000)]
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count
        count += 1
        body = f"{count} {all(heap[i].startswith(bytes(str(i), 'ascii')) for i in range(20000))}\n".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
P
cat > ~/holder.py <<'P'
# holder.py PORT FILE: keeps one connection open, and asks on it whenever FILE.go appears.
import http.client, os, sys, time
port, file = int(sys.argv[1]), sys.argv[2]
c = http.client.HTTPConnection("127.0.0.1", port, timeout=120); c.connect()
def ask():
    try:
        c.request("GET", "/"); r = c.getresponse().read().decode().strip()
    except Exception as e: r = f"ERROR {e!r}"
    with open(file + ".new", "w") as f: f.write(r)
    os.rename(file + ".new", file)
ask()
while True:
    if os.path.exists(file + ".go"): os.unlink(file + ".go"); ask()
    time.sleep(0.1)
P
mkdir -p ~/.config/dormouse ~/.config/systemd/user/dormouse.service.d
printf '[Service]\nExecStartPre=\nExecStartPre=-%s daemon --before-start\nExecStopPost=\nExecStopPost=-%s daemon --before-start\nExecStart=\nExecStart=%s daemon\n' "$DM" "$DM" "$DM" \
  > ~/.config/systemd/user/dormouse.service.d/machine.conf
cat > ~/.config/dormouse/dormouse.yaml <<P
policy: ios-5
policy_overrides: { watchdog: { launch: 5m }, background: { suspend_after: never }, pressure: { warning: never, urgent: never }, hibernate: { after: never, cooldown: 0s, max_footprint: 128MB, min_footprint: 256KB, only_if_faster_than_relaunch: false } }
workers:
  web: { command: [python3, $HOME/server.py, "8001"], readiness: { tcp: 8001 } }
  api: { command: [python3, $HOME/server.py, "8002"], readiness: { tcp: 8002 } }
  cache: { command: redis-server --port 8004 --save "", readiness: { tcp: 8004 } }
P
WORKERS="web api cache"; HOLDERS=
ready() { for _ in $(seq 90); do timeout 10 "$CLIENT" ps 2> /dev/null | grep -cE '^(web|api|cache) .*(background|foreground|suspended|hibernated)' | grep -q 3 && return; sleep 1; done; }
hibernate() { local w; for w in $WORKERS; do timeout 100 "$CLIENT" hibernate $w; done; }
VISIT=1
# Each open connection asks once more, and each answer is the next of the same process.
answers() { # WHEN
  local w end ok=yes; VISIT=$((VISIT + 1))
  for w in web api; do touch /tmp/holder.$w.go; done
  end=$((SECONDS + 90))
  for w in web api; do
    while [ $SECONDS -lt $end ] && [ "$(cat /tmp/holder.$w)" != "$VISIT True" ]; do sleep 0.5; done
    [ "$(cat /tmp/holder.$w)" = "$VISIT True" ] || { ok=no; echo "  $w: $(cat /tmp/holder.$w), expected $VISIT True"; }
  done
  [ "$(timeout 60 redis-cli -p 8004 get x)" = 42 ] || { ok=no; echo "  cache doesn't have x"; }
  check "$1: every open connection is answered by the same process, with its memory" "[ $ok = yes ]"
  [ $ok = yes ] || timeout 20 "$CLIENT" ps
}
sleeping() { timeout 20 "$CLIENT" ps | grep -cE '^(web|api|cache) .*hibernated'; }
sudo sysctl -qw kernel.yama.ptrace_scope="$SCOPE"
echo "$("$CLIENT" --version), $(systemctl --version | head -1), Linux $(uname -r), $(id -un), ptrace_scope $(cat /proc/sys/kernel/yama/ptrace_scope)"
systemctl --user daemon-reload; systemctl --user reset-failed dormouse 2> /dev/null; systemctl --user restart dormouse; ready
sudo rm -f /tmp/holder.*
python3 ~/holder.py 8001 /tmp/holder.web & HOLDERS="$HOLDERS $!"
python3 ~/holder.py 8002 /tmp/holder.api & HOLDERS="$HOLDERS $!"
for _ in $(seq 60); do [ -e /tmp/holder.web ] && [ -e /tmp/holder.api ] && break; sleep 1; done
timeout 20 redis-cli -p 8004 set x 42 > /dev/null; sleep 3
hibernate; check "all three are hibernated" '[ "$(sleeping)" = 3 ]'
answers "wake by the living daemon"
sleep 2; hibernate; check "all three are hibernated before kill -9" '[ "$(sleeping)" = 3 ]'
main=$(systemctl --user show -p MainPID --value dormouse); kill -9 "$main"; sleep 3; ready
check "after kill -9 another daemon runs" '[ "$(systemctl --user show -p MainPID --value dormouse)" != $main ] && [ "$(systemctl --user is-active dormouse)" = active ]'
timeout 20 "$CLIENT" ps | sed 's/^/  /'
answers "after kill -9"
timeout 20 "$CLIENT" hibernate web | sed 's/^/  hibernate web, of the earlier daemon: /' 2>&1
for w in $WORKERS; do timeout 60 "$CLIENT" restart $w > /dev/null; done; ready; sleep 2
kill $HOLDERS; HOLDERS=; rm -f /tmp/holder.*; VISIT=1
python3 ~/holder.py 8001 /tmp/holder.web & HOLDERS="$HOLDERS $!"
python3 ~/holder.py 8002 /tmp/holder.api & HOLDERS="$HOLDERS $!"
for _ in $(seq 60); do [ -e /tmp/holder.web ] && [ -e /tmp/holder.api ] && break; sleep 1; done
timeout 20 redis-cli -p 8004 set x 42 > /dev/null; sleep 3
hibernate; check "all three are hibernated before the upgrade" '[ "$(sleeping)" = 3 ]'
timeout 100 "$CLIENT" shutdown --keep-workers; echo "  shutdown --keep-workers: rc $?"; sleep 3
systemctl --user start dormouse; sleep 2; ready
timeout 20 "$CLIENT" ps | sed 's/^/  /'
answers "after the upgrade"
kill $HOLDERS; sudo rm -f /tmp/holder.*
journalctl --user -u dormouse --no-pager -q -o cat -n 40 | grep -iE 'yama|permit|keeper|mem:' | cut -c1-200 | tail -8 | sed 's/^/  /'
systemctl --user stop dormouse; sudo sysctl -qw kernel.yama.ptrace_scope=0
exit $FAILED
