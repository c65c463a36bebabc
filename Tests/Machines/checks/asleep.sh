#!/bin/bash
# check: sleeping workers over a reload of the unit, kill -9, an upgrade; systemctl stop ends them
# seconds: 60
# order: 42
#
# Runs inside a machine with systemd, as root, with the package installed. Workers of the unit sleep
# over `kill -9` of the daemon, an upgrade (`shutdown --keep-workers`), and a reload of the unit; `ps` shows
# their images, and the daemon logs once why writes can't be tracked (Linux before 6.7). Each line ends in ok or FAIL.
CLIENT=/usr/bin/dormouse; FAILED=0
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
mkdir -p /etc/dormouse
cat > /var/tmp/server.py <<'P'
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
cat > /etc/dormouse/dormouse.yaml <<'P'
policy: ios-5
policy_overrides: { watchdog: { launch: 5m }, background: { suspend_after: never }, pressure: { warning: never, urgent: never }, hibernate: { after: never, cooldown: 0s, max_footprint: 128MB, min_footprint: 256KB, only_if_faster_than_relaunch: false } }
workers:
  web: { command: [python3, /var/tmp/server.py, "8001"], readiness: { tcp: 8001 } }
  still: { command: [python3, /var/tmp/server.py, "8002"], readiness: { tcp: 8002 } }
P
systemctl daemon-reload; systemctl reset-failed dormouse 2> /dev/null; systemctl restart dormouse
BEGAN=$(date '+%Y-%m-%d %H:%M:%S')
ready() { for _ in $(seq 90); do timeout 10 "$CLIENT" ps 2> /dev/null | grep -cE '^(web|still) .*(background|foreground|suspended|hibernated)' | grep -q 2 && return; sleep 1; done; }
VISIT=0
answers() { VISIT=$((VISIT + 1)); check "$1: web answers with its memory" '[ "$(curl -s -m 60 http://127.0.0.1:8001/)" = "$VISIT True" ]'; }
hibernated() { timeout 20 "$CLIENT" ps | grep -qE '^'"$1"' .*hibernated'; }
image() { timeout 20 "$CLIENT" ps | awk -v w="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "IMAGE") c = index($0, "IMAGE") } $1 == w { print substr($0, c - 4, 9) }'; }
echo "$("$CLIENT" --version), $(systemctl --version | head -1), Linux $(uname -r)"
ready
for _ in 1 2 3; do answers "hibernation"; sleep 1; timeout 100 "$CLIENT" hibernate web > /dev/null; hibernated web || timeout 100 "$CLIENT" hibernate web; done
timeout 100 "$CLIENT" hibernate still > /dev/null
check "both sleep" 'hibernated web && hibernated still'
timeout 20 "$CLIENT" ps | sed 's/^/  /'
check "why writes can't be tracked is logged at most once" \
  '[ "$(journalctl -u dormouse --no-pager -q -o cat --since "$BEGAN" | grep -c "be tracked")" -le 1 ]'
start=${EPOCHREALTIME/./}; timeout 60 systemctl reload dormouse; code=$?
check "systemctl reload dormouse with sleepers works ($(((${EPOCHREALTIME/./} - start) / 1000)) ms)" '[ $code = 0 ] && hibernated web'
main=$(systemctl show -p MainPID --value dormouse); kill -9 "$main"; sleep 3; ready
check "after kill -9 another daemon runs" '[ "$(systemctl show -p MainPID --value dormouse)" != "$main" ]'
timeout 20 "$CLIENT" ps | sed 's/^/  /'
check "after kill -9 both sleep on" 'hibernated web && hibernated still'
check "after kill -9 ps shows the images" '[[ "$(image web)$(image still)" =~ [0-9].*[0-9] ]]'
answers "after kill -9"
sleep 1; timeout 100 "$CLIENT" hibernate web > /dev/null
timeout 100 "$CLIENT" shutdown --keep-workers; sleep 2; systemctl start dormouse; ready
check "after an upgrade both sleep on" 'hibernated web && hibernated still'
check "after an upgrade ps shows the images" '[[ "$(image web)$(image still)" =~ [0-9].*[0-9] ]]'
answers "after an upgrade"
start=${EPOCHREALTIME/./}; systemctl stop dormouse
echo "  systemctl stop dormouse: $(((${EPOCHREALTIME/./} - start) / 1000)) ms"
check "systemctl stop ends sleepers, too" '! pgrep -f /var/tmp/server.py > /dev/null'
exit $FAILED
