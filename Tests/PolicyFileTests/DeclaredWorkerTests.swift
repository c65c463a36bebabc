import Policy
import Testing

@testable import PolicyFile

@Suite struct `Declared workers` {
  static let full = """
    workers:
      db:
        command: [postgres, -D, data]
        user: postgres
        group: "27"
        limits:
          nofile: 65536
          core: 0B
          memlock: { soft: 64KB, hard: unlimited }
          cpu: 60s
          memory: 2GB
          oom_score_adj: -250
        readiness: { exec: { command: [pg_isready, -q] }, periodSeconds: 2, failureThreshold: 30 }
        liveness: { tcpSocket: { port: 5432 }, initialDelaySeconds: 30, timeoutSeconds: 5 }
        restart:
          when: always
          backoff: { initial: 2s, max: 2m, factor: 1.5 }
          give_up: { after: 3, within: 1h }
        stop_command: [pg_ctl, stop, -D, data]
        stop_signal: INT
        stop_grace: 30s
        reload_signal: SIGHUP
        watchdog: 90s
        fdstore: 7
        shed: { http: { port: 80 } }
        umask: 027
        output: { file: log/db.log, max_size: 10MB, keep: 3 }
      migrate:
        command: [rails, "db:migrate"]
        depends_on: [db]
        restart: on-failure
        readiness: { notification_fd: 3 }
        notify: true
        shed: { http: { port: 81, path: /shed, method: PUT } }
      web:
        command: [web, "${PORT}", "$${PORT}", $$]
        environment: { PORT: 8080, COST: $$5 }
        depends_on: { db: ready, migrate: { condition: exited_ok } }
        readiness:
          httpGet: { path: /healthz, port: 8080, httpHeaders: [{ name: X-Check, value: a b }] }
        listen: { http: 8080, admin: "[::1]:81", dns: "udp:0.0.0.0:53", local: /run/web.sock }
        wake_at: ["0 3 * * *", "@hourly"]
        wake_with: [db, helper]
        health_checks_while_asleep: [9090, { port: 8080, path: /healthz }]
        restart: { when: unless-stopped, give_up: never }
      helper:
        command: helper
        readiness: { log_pattern: "^listening on [0-9]+" }
        listen: ["@helper", 8081]
        wake_at: "*/5 * * * *"
        wake_with: [web]
        health_checks_while_asleep: 8081
    """

  @Test func `A stop command is read, and is none by default`() throws {
    let workers = try #require(configuration(Self.full).value).workers
    #expect(workers[0].stopCommand == ["pg_ctl", "stop", "-D", "data"])
    #expect(workers[1].stopCommand == nil)
  }

  @Test func `Declared workers are read in full`() throws {
    let result = configuration(Self.full)
    #expect(result.errors.isEmpty, "\(result.rendered)")
    let workers = try #require(result.value).workers
    let (db, migrate, web, helper) = (workers[0], workers[1], workers[2], workers[3])
    #expect(db.user == "postgres" && db.group == "27")
    #expect(db.limits.resources[.nofile] == .init(soft: 65_536, hard: 65_536))
    #expect(db.limits.resources[.memlock] == .init(soft: 65_536, hard: nil))
    #expect(db.limits.resources[.cpu] == .init(soft: 60, hard: 60))
    #expect(db.limits.memory == .gigabytes(2))
    #expect(db.limits.oomScore == -250)
    #expect(
      db.readiness
        == .probe(
          Probe(.exec(["pg_isready", "-q"]), period: .seconds(2), failureThreshold: 30)))
    #expect(
      db.liveness
        == Probe(
          .tcp(host: "127.0.0.1", port: 5432), initialDelay: .seconds(30), timeout: .seconds(5)))
    #expect(
      db.restart
        == RestartRules(
          .always, backoff: Backoff(initial: .seconds(2), max: .seconds(120), factor: 1.5),
          giveUp: .init(restarts: 3, window: .seconds(3_600))))
    #expect(db.policy.terminate.grace == .seconds(30))
    #expect(db.reloadSignal == 1 && db.umask == 0o27)
    #expect(web.reloadSignal == nil && web.umask == nil)
    #expect(
      db.output == WorkerOutput(file: "etc/log/db.log", maxSize: .megabytes(10), keep: 3))
    #expect(migrate.dependsOn == [Dependency("db", .ready)])
    #expect(db.watchdog == .seconds(90) && db.hasNotifySocket && !db.notify)
    #expect(db.fdstore == 7 && web.fdstore == 0)
    var request = Probe.HTTPRequest(port: 80)
    (request.method, request.successes) = ("POST", 200...299)
    #expect(db.shed == .http(request))
    (request.port, request.path, request.method) = (81, "/shed", "PUT")
    #expect(migrate.shed == .http(request))
    #expect(migrate.notify && migrate.hasNotifySocket)
    #expect(web.watchdog == nil && !web.hasNotifySocket)
    #expect(migrate.restart == RestartRules(.onFailure))
    #expect(migrate.readiness == .notificationDescriptor(3))
    #expect(web.command == ["web", "8080", "${PORT}", "$$"])
    #expect(web.environment == ["PORT": "8080", "COST": "$5"])
    #expect(web.dependsOn == [Dependency("db", .ready), Dependency("migrate", .exitedOK)])
    #expect(
      web.readiness
        == .probe(
          Probe(
            .http(
              .init(port: 8080, path: "/healthz", headers: [.init(name: "X-Check", value: "a b")])))
        ))
    #expect(
      web.listen == [
        ListenSocket(name: "http", address: .tcp(host: "127.0.0.1", port: 8080)),
        ListenSocket(name: "admin", address: .tcp(host: "::1", port: 81)),
        ListenSocket(name: "dns", address: .udp(host: "0.0.0.0", port: 53)),
        ListenSocket(name: "local", address: .unix("/run/web.sock")),
      ])
    #expect(web.wakeAt.map(\.text) == ["0 3 * * *", "@hourly"])
    #expect(
      web.healthChecksWhileAsleep == [
        AsleepAnswer(port: 9090), AsleepAnswer(port: 8080, path: "/healthz"),
      ])
    #expect(web.restart == RestartRules(.unlessStopped, giveUp: nil))
    #expect(helper.readiness == .logPattern("^listening on [0-9]+"))
    #expect(helper.listen.map(\.address.text) == ["@helper", "127.0.0.1:8081"])
    #expect(helper.listen.map(\.name) == ["helper", "helper"])
  }

  @Test func `Declared workers that are rendered and read again are equal`() throws {
    for text in [Self.full, `The daemon's configuration`.full] {
      let read = try #require(
        ConfigurationFile.parse(
          text: text, file: "dormouse.yaml", library: library, environment: ["HOME": "/h"]
        ).value)
      let again = ConfigurationFile.parse(
        text: "workers:\n" + read.workers.map(ConfigurationFile.render).joined(),
        file: "dormouse.yaml", library: library, environment: [:], policy: "ios-5")
      #expect(again.errors.isEmpty, "\(again.rendered)")
      let workers = read.workers.map { worker in
        var worker = worker
        worker.policy = LifecyclePolicy()
        return worker
      }
      #expect(again.value?.workers == workers)
    }
  }

  @Test(arguments: KeyExplorer.worker().paths().filter { !$0.hasPrefix("policy.") })
  func `A value of the wrong kind is refused for each key of a worker`(key: String) {
    let parts = key.split(separator: ".")
    let inner = parts.dropFirst().reduce("") { $0 + "{ \($1): " } + "[[]]"
    let text = "\(parts[0]): \(inner)" + String(repeating: " }", count: parts.count - 1)
    let other = key == "command" ? "" : "command: a, "
    let result = configuration("workers: { w: { \(other)\(text) } }")
    #expect(result.value == nil, "\(text)")
  }

  @Test func `An error about circular dependencies names the workers in their order`() {
    let result = configuration(
      """
      workers:
        a: { command: x, depends_on: { b: started } }
        b: { command: x, depends_on: [c] }
        c: { command: x, depends_on: [a] }
      """)
    #expect(
      result.errors.map(\.message) == [
        "these workers depend on each other in a circle: `a` → `b` → `c` → `a`"
      ])
    #expect(result.errors.first?.position == Position(line: 2, column: 34))
  }

  @Test func `Workers may wake each other in a circle`() throws {
    let workers = try #require(configuration(Self.full).value).workers
    #expect(workers.map(\.wakeWith) == [[], [], ["db", "helper"], ["web"]])
  }

  @Test func `A dependency on the end of a worker that is always restarted gives a warning`() {
    let result = configuration(
      """
      workers:
        a: { command: x, depends_on: { b: exited_ok } }
        b: { command: x, restart: always }
      """)
    #expect(result.warnings.contains { $0.message.hasPrefix("`b` is restarted whenever it ends") })
  }

  @Test func `An error points at the missing variable, or at the wrong field of a schedule`() {
    let variable = configuration("workers: { w: { command: a, directory: \"/srv/${NOPE}/x\" } }")
    #expect(
      variable.rendered == """
        etc/dormouse.yaml:1:46: error: `directory` needs the variable `NOPE`, which the daemon \
        doesn't have
        workers: { w: { command: a, directory: "/srv/${NOPE}/x" } }
                                                     ^
        help: set it, or write `${NOPE:-default}`
        """, "\(variable.rendered)")
    let schedule = configuration("workers: { w: { command: a, wake_at: 0 3 * * fri-mon } }")
    #expect(schedule.errors.first?.position == Position(line: 1, column: 46))
    let wake = configuration(
      "workers: { w: { command: a, wake_with: [w2, w3] }, w2: { command: b } }")
    #expect(wake.errors.first?.position == Position(line: 1, column: 45))
    let command = configuration("workers: { w: { command: [sh, -c, 'echo ${A%.c}'] } }")
    #expect(
      command.errors.first?.suggestion
        == "write `${VAR}`, `${VAR:-default}` or `${VAR:+text}`; a shell's own are written `$${…}`")
  }

  @Test func `Variables are replaced everywhere in a configuration`() throws {
    let text = """
      policy: ${POLICY:-ios-5}
      socket: ${RUN}/d.sock
      policy_overrides: { hibernate: { max_footprint: "${MAX:-64MB}" } }
      workers:
        w: { command: "run ${ARGUMENT}", importance: "${IMPORTANCE:-7}", autostart: "${AUTO}" }
      """
    let result = configuration(
      text, environment: ["RUN": "/run", "ARGUMENT": "a b", "AUTO": "false"])
    let read = try #require(result.value, "\(result.rendered)")
    #expect(read.socket == "/run/d.sock")
    #expect(read.policy.hibernate.maxFootprint == .megabytes(64))
    // A value with a blank in it is one word nevertheless.
    #expect(read.workers[0].command == ["run", "a b"])
    #expect(read.workers[0].importance == 7 && !read.workers[0].autostart)
  }
}
