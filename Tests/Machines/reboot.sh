#!/bin/bash
# reboot.sh EXECUTABLE sleep [UNIT...] | check
#
# Runs inside a machine with systemd, as root: `reboot.sh EXECUTABLE sleep` adopts units, writes to them and
# hibernates them. Then reboot the machine in the orderly way (`systemctl reboot`), and run
# `reboot.sh EXECUTABLE check`: the written data exists, no unit was killed or crashed, and the shutdown took no longer
# than without sleepers. Run manager.sh first, which makes the probe.
DM=${1:?the executable}; CLIENT=${CLIENT:-$DM}; HOW=$2; shift 2; FAILED=0
export PATH=/usr/local/bin:$PATH
unit() { case $1 in postgresql) echo postgresql@$(ls /etc/postgresql | head -1)-main.service;; *) echo "$1.service";; esac; }
KEEP=/var/lib/machine-check; mkdir -p $KEEP
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
case $HOW in
  sleep)
    UNITS=${*:-probe nginx redis-server postgresql}; MARK=m$RANDOM
    echo "$UNITS" > $KEEP/units; echo $MARK > $KEEP/mark; rm -f /var/tmp/probe.saved
    date '+%Y-%m-%d %H:%M:%S' > $KEEP/since
    systemctl reset-failed dormouse 2> /dev/null; systemctl enable dormouse 2> /dev/null; systemctl restart dormouse
    for name in $UNITS; do systemctl start "$(unit "$name")"; done
    for _ in $(seq 60); do curl -s -m 5 http://127.0.0.1:7101/ > $KEEP/visits && break; sleep 1; done
    case " $UNITS " in *" redis-server "*) redis-cli set key $MARK;; esac
    case " $UNITS " in *" postgresql "*)
      for _ in $(seq 60); do (cd /; su postgres -c "psql -qAtc \"drop table if exists machine_check; create table machine_check as select '$MARK' v\"") 2> /dev/null && break; sleep 1; done;;
    esac
    for name in $UNITS; do
      timeout 60 "$CLIENT" adopt "a-$name" --unit "$(unit "$name")"
      for _ in 1 2 3; do timeout 100 "$CLIENT" hibernate "a-$name" && break; sleep 2; done
    done
    timeout 20 "$CLIENT" ps
    for name in $UNITS; do check "$name sleeps" "timeout 20 '$CLIENT' ps | grep -q '^a-$name .*hibernated'"; done
    sync;;
  check)
    MARK=$(cat $KEEP/mark); UNITS=$(cat $KEEP/units); systemctl is-system-running --wait > /dev/null
    for name in $UNITS; do
      u=$(unit "$name"); journalctl -b -1 -u "$u" --no-pager -q -o short-precise --since "$(cat $KEEP/since)" > /tmp/last
      echo "  $u, last boot:"; tail -4 /tmp/last | cut -c1-150 | sed 's/^/    /'
      check "$u was stopped in the orderly way" "! grep -qE 'Killing|code=killed|code=dumped|timed out|Failed with result' /tmp/last"
    done
    echo "  dormouse.service, last boot:"; journalctl -b -1 -u dormouse --no-pager -q -o short-precise | tail -12 | cut -c1-170 | sed 's/^/    /'
    journalctl -b -1 --no-pager -q -o short-precise | grep -E 'Reboot|reboot|Stopped target|Reached target.*(Shutdown|shutdown)|systemd-shutdown|Journal stopped' | cut -c1-120 | tail -8 | sed 's/^/  /'
    check "no crash" "! journalctl -b -1 -k --no-pager -q | grep -qE 'segfault|general protection'"
    case " $UNITS " in *" probe "*) check "the probe has saved its count" '[ "$(cat /var/tmp/probe.saved)" -ge "$(cut -d" " -f1 $KEEP/visits)" ]';; esac
    case " $UNITS " in *" redis-server "*)
      systemctl start redis-server; sleep 5; check "redis has the last write" '[ "$(redis-cli get key)" = $MARK ]';; esac
    case " $UNITS " in *" nginx "*)
      systemctl start nginx; sleep 3; check "nginx answers" '[ "$(curl -s -m 20 -o /dev/null -w "%{http_code}" http://127.0.0.1/)" = 200 ]';; esac
    case " $UNITS " in *" postgresql "*)
      systemctl start "$(unit postgresql)"; sleep 5
      check "PostgreSQL has the last write" '[ "$(cd /; su postgres -c "psql -Atc \"select v from machine_check\"")" = $MARK ]'
      check "PostgreSQL was shut down cleanly" '! grep -q "not properly shut down" /var/log/postgresql/*.log';;
    esac
    check "no image is left" '[ -z "$(ls /var/lib/dormouse/images 2> /dev/null)" ]';;
esac
exit $FAILED
