"""Five services as workers, and clients that keep one connection to each open all the time."""
import http.client
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess

from common import AS, CALM, PATIENCE, PROGRAMS, check, eventually, identity, run

PORTS = {"python": 8101, "node": 8102, "redis": 8103, "nginx": 8104, "postgres": 8105}
# PostgreSQL refuses to run as root.
DATABASE_USER = "postgres" if AS == "root" else AS
DATABASE = "/var/lib/machine-postgres" if AS == "root" else f"/home/{AS}/postgres"


def configuration():
    binaries = max(pathlib.Path("/usr/lib/postgresql").iterdir(), key=lambda p: int(p.name)) / "bin"
    owner = pwd.getpwnam(DATABASE_USER)
    if not os.path.exists(DATABASE):
        os.mkdir(DATABASE, 0o700)
        os.chown(DATABASE, owner.pw_uid, owner.pw_gid)
        made = run(binaries / "initdb", "-D", DATABASE, "-A", "trust", "--no-sync", seconds=120, user=DATABASE_USER)
        assert made.code == 0, made.text
    home = pathlib.Path("/var/tmp") / f"nginx-{AS}"
    home.mkdir(exist_ok=True)
    shutil.chown(home, AS)
    (home / "nginx.conf").write_text(
        f"daemon off; pid {home}/pid; error_log {home}/error;\nevents {{}}\n"
        f"http {{ access_log off; keepalive_timeout 1d; client_body_temp_path {home}; proxy_temp_path {home}; "
        f"fastcgi_temp_path {home}; uwsgi_temp_path {home}; scgi_temp_path {home};\n"
        f"server {{ listen 127.0.0.1:{PORTS['nginx']}; location / {{ return 200 \"$connection $connection_requests intact\\n\"; }} }} }}\n")
    user = "" if AS != "root" else ", user: postgres"
    return CALM + f"""workers:
  python: {{ command: [python3, {PROGRAMS}/server.py, "{PORTS['python']}"], readiness: {{ tcp: {PORTS['python']} }} }}
  node: {{ command: [node, {PROGRAMS}/server.mjs, "{PORTS['node']}"], readiness: {{ tcp: {PORTS['node']} }} }}
  redis: {{ command: [redis-server, --port, "{PORTS['redis']}", --save, "", --bind, 127.0.0.1], directory: /tmp, readiness: {{ tcp: {PORTS['redis']} }} }}
  nginx: {{ command: [/usr/sbin/nginx, -c, {home}/nginx.conf, -e, {home}/error], readiness: {{ tcp: {PORTS['nginx']} }} }}
  postgres: {{ command: [{binaries}/postgres, -D, {DATABASE}, -p, "{PORTS['postgres']}", -k, /tmp, -c, "autovacuum=off"], directory: /tmp, stop_signal: INT, readiness: {{ tcp: {PORTS['postgres']} }}{user} }}
"""


class Clients:
    """Each answer has to come from the same process on the same connection, and be the next one."""

    def __init__(self):
        self._seen = {}
        self._http = {n: http.client.HTTPConnection("127.0.0.1", PORTS[n], timeout=60 * PATIENCE)
                      for n in ("python", "node", "nginx")}
        self._redis = socket.create_connection(("127.0.0.1", PORTS["redis"]), 60 * PATIENCE)
        self._psql = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-h", "/tmp", "-p", str(PORTS["postgres"]), "-d", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **identity(DATABASE_USER))
        self.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (v int); BEGIN; INSERT INTO t VALUES (0)")

    def sql(self, text):
        """In the session whose transaction is open."""
        self._psql.stdin.write(text + ";\n\\echo ----\n")
        self._psql.stdin.flush()
        lines = []
        while (line := self._psql.stdout.readline().strip()) != "----":
            lines.append(line)
            if not line and self._psql.poll() is not None:
                raise ConnectionError("psql has ended: " + " ".join(lines))
        return " ".join(lines)

    def sql_elsewhere(self, text):
        return run("psql", "-X", "-A", "-t", "-h", "/tmp", "-p", PORTS["postgres"], "-d", "postgres", "-c", text,
                   user=DATABASE_USER).text

    def ask(self, name):
        """None if the answer is right, or what is wrong."""
        try:
            return {"redis": self._ask_redis, "postgres": self._ask_postgres}.get(name, self._ask_http)(name)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return repr(error)

    def check(self, name, when):
        wrong = self.ask(name)
        check(f"{name} answers on its open connection, the same process, {when}", wrong is None, wrong)

    def check_all(self, when):
        for name in PORTS:
            self.check(name, when)

    def _next(self, name, identity, count, text):
        before = self._seen.get(name)
        self._seen[name] = (identity, count)
        if before and (identity, count) != (before[0], before[1] + 1):
            return f"{text} after {before}"

    def _ask_http(self, name):
        connection = self._http[name]
        if self._seen.get(name) and connection.sock is None:
            return "the connection was closed"
        connection.request("GET", "/")
        text = connection.getresponse().read().decode().strip()
        match = re.fullmatch(r"(\d+) (\d+) intact", text)
        return self._next(name, match[1], int(match[2]), text) if match else text

    def _ask_redis(self, name):
        self._redis.sendall(b"INCR count\r\n")
        text = self._redis.recv(100).decode().strip()
        return self._next(name, "", int(text[1:]), text) if text.startswith(":") else text

    def _ask_postgres(self, name):
        """The open transaction sees its own rows, and no other session does."""
        count = self._seen.get(name, (None, 0))[1] + 1
        text = self.sql(f"INSERT INTO t VALUES ({count}); SELECT pg_backend_pid() || ' ' || count(*) FROM t")
        match = re.fullmatch(r"(\d+) (\d+)", text)
        return self._next(name, match[1], int(match[2]) - 1, text) if match else text

    def commit(self):
        """What the transaction wrote is visible to all: the number of rows, for this and another session."""
        rows = str(self._seen["postgres"][1] + 1)
        hidden = self.sql_elsewhere("SELECT count(*) FROM t")
        self.sql("COMMIT")
        return rows, hidden, self.sql_elsewhere("SELECT count(*) FROM t")


def connected():
    """Clients that have got an answer of each service."""
    def reachable():
        try:
            for port in PORTS.values():
                socket.create_connection(("127.0.0.1", port), 5).close()
            return True
        except OSError:
            return False
    assert eventually(reachable, 60, 1), "not all services listen"
    clients = Clients()
    for name in PORTS:
        clients.ask(name)
    return clients
