#!/bin/bash
# check: apt installs it, an upgrade keeps sleepers, removing wakes all workers, purging leaves nothing
# start: booted
# seconds: 120
# order: 15
# package.sh: installs the package, upgrades it under a sleeping worker, removes and purges it.
# The user `demo` has a worker of its own under its user's unit. Needs python3, and free ports 7801 and 7802.
set -u
deb=${1:-/opt/machine/dormouse.deb}
export DEBIAN_FRONTEND=noninteractive
failures=0
check() { # TEXT COMMAND…
  local text=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "$text: ok"; else echo "FAIL: $text"; failures=$((failures + 1)); fi
}
as_demo() {
  setpriv --reuid=demo --regid=demo --init-groups env -i HOME=/home/demo PATH=/usr/bin:/bin \
    XDG_RUNTIME_DIR="/run/user/$(id -u demo)" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$(id -u demo)/bus" "$@"
}
eventually() { # SECONDS COMMAND…
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done
}
server='
import http.server, os, random
random.seed(1)
state = [random.random() for _ in range(200000)]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(f"{os.getpid()} {sum(state):.6f}\n".encode())
    def log_message(self, *rest): pass
import sys
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()'
ask() { python3 -c 'import sys, urllib.request as r; print(r.urlopen("http://127.0.0.1:" + sys.argv[1], timeout=60).read().decode().strip())' "$1"; }
state_is() { "${@:2}" dormouse status web --json | grep -q "\"state\":\"$1\""; }
hibernates() { # COMMAND PREFIX…: hibernates `web`, once it is ready
  eventually 60 "$@" dormouse hibernate web
}
same() { [ "$1" = "$2" ]; }
nothing_left() { ! find / -xdev \( -path /proc -o -path /sys -o -path /mnt -o -path /root -o -path /home -o -path /var/log -o -path '/var/cache/apt' -o -path '/var/lib/apt' -o -path /tmp \) -prune -o -iname '*dormouse*' -print | grep .; }

check "apt installs it" apt-get install -y "$deb"
check "the system's service runs" eventually 60 systemctl is-active --quiet dormouse
check "it starts at boot" systemctl is-enabled --quiet dormouse
check "an empty configuration is a running daemon" dormouse ps
check "doctor: hibernation works" sh -c 'dormouse doctor | head -n 1 | grep -i "works"'
dormouse doctor | head -n 3
check "the user's unit starts" as_demo systemctl --user enable --now dormouse
check "the user's daemon answers" eventually 60 as_demo dormouse ps
check "the manual is there" test -s /usr/share/man/man1/dormouse.1.gz

dormouse run web -- python3 -c "$server" 7801 >/dev/null
as_demo dormouse run web -- python3 -c "$server" 7802 >/dev/null
eventually 120 ask 7801; eventually 120 ask 7802
before=$(ask 7801) before_demo=$(ask 7802)
check "a worker of the system's daemon hibernates" hibernates
check "a worker of the user's daemon hibernates" hibernates as_demo

old=$(systemctl show -P MainPID dormouse)
check "an upgrade succeeds" dpkg -i "$deb"
check "the upgraded service runs" eventually 60 systemctl is-active --quiet dormouse
check "its daemon is a new one" test "$old" != "$(systemctl show -P MainPID dormouse)"
check "the sleeping worker slept through the upgrade" eventually 30 state_is hibernated env
check "it answers as before the upgrade" same "$before" "$(ask 7801)"
check "the user's worker sleeps on" state_is hibernated as_demo
check "it hibernates again" hibernates

check "apt removes it" apt-get remove -y dormouse
check "the executable is removed" test ! -e /usr/bin/dormouse
check "no daemon is left" test -z "$(pgrep -x dormouse)"
check "the system's worker was woken, and has its state" same "$before" "$(ask 7801)"
check "the user's worker was woken, and has its state" same "$before_demo" "$(ask 7802)"
check "the configuration is kept" test -e /etc/dormouse/dormouse.yaml
kill "${before%% *}" "${before_demo%% *}"
check "apt purges it" apt-get purge -y dormouse
check "nothing is left" nothing_left
nothing_left
find / -xdev \( -path /proc -o -path /sys -o -path /mnt -o -path /root -o -path /home \) -prune -o -iname '*dormouse*' -print | head
[ $failures = 0 ]
