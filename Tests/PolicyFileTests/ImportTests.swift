import Policy
import Testing

@testable import PolicyFile

@Suite struct `Imports` {
  @Test func `An import of a Procfile makes a worker of each line`() throws {
    let result = ProcfileImport.convert(
      text: """
        # comment
        web: bundle exec puma -p $PORT
        worker:  python3 worker.py --queue high

        release: ./migrate && echo "done"
        """, file: "app/Procfile", environmentFile: nil)
    #expect(result.diagnostics.isEmpty)
    let imported = try readImport(result, mayWarn: true).1
    #expect(imported.policy.name == "standard")
    #expect(imported.workers.map(\.name) == ["web", "worker", "release"])
    #expect(imported.workers[0].command == ["sh", "-c", "bundle exec puma -p $PORT"])
    #expect(imported.workers.map(\.environment) == ["5000", "5100", "5200"].map { ["PORT": $0] })
    #expect(imported.workers[1].command == ["python3", "worker.py", "--queue", "high"])
    #expect(imported.workers[2].command == ["sh", "-c", "./migrate && echo \"done\""])
    #expect(!imported.workers[2].autostart)
    #expect(result.value?.notes == 1 && result.value?.workers == 3)
    let withFile = ProcfileImport.convert(
      text: "a: b\nc: d", file: "Procfile", environmentFile: "A=1\nPORT=3000\n")
    #expect(withFile.value?.text.contains("    env_file: .env\n") == true)
    #expect(withFile.value?.text.contains("PORT: 3000") == true)
    #expect(withFile.value?.text.contains("PORT: 3100") == true)
  }

  @Test func `The import of a wrong Procfile reports the line of each error`() {
    let result = ProcfileImport.convert(
      text: "web: a\nno colon\nweb: b\n a b: c\nempty:\n", file: "Procfile",
      environmentFile: nil)
    #expect(result.value == nil)
    #expect(result.errors.map(\.position?.line) == [2, 3, 4, 5])
    #expect(result.errors.first?.rendered.hasPrefix("Procfile:2:1: error: is not `name: ") == true)
  }

  static let compose = """
    version: "0.5"
    log_level: info
    environment: [ "GLOBAL=1", "SHARED=old" ]
    processes:
      db:
        description: The database
        command: "postgres -D data"
        working_dir: /srv/${NAME}
        namespace: data
        readiness_probe:
          exec: { command: "pg_isready -h $PGHOST" }
          initial_delay_seconds: 5
          period_seconds: 2
          failure_threshold: 30
        availability: { restart: always, backoff_seconds: 2, max_restarts: 4 }
        shutdown:
          command: "pg_ctl stop -D $PGDATA"
          signal: 2
          timeout_seconds: 20
          parent_only: yes
      web:
        command: "./web --port 8080 | tee $${LOG}"
        environment: { SHARED: "new $$5 $X" }
        depends_on:
          db: { condition: process_healthy }
          job: { condition: process_completed_successfully }
          ghost: { condition: process_started }
        liveness_probe:
          http_get: { host: 127.0.0.1, scheme: http, path: /health, port: "8080" }
          success_threshold: 1
        log_location: web.log
        log_configuration: { rotation: { max_size_mb: 2, max_backups: 4, max_age_days: 7 } }
        is_tty: true
      job:
        command: |
          cd /tmp
          ./job
        ready_log_line: "ready to accept"
        availability: { restart: exit_on_failure }
        disabled: true
    """

  @Test(
    "A time of 0 to stop is no limit for process-compose, and doesn't kill at once",
    arguments: [("timeout_seconds: 0", 3600), ("timeout_seconds: 20", 20)])
  func endlessStop(text: String, grace: Int) throws {
    let (imported, configuration) = try readImport(
      ProcessComposeImport.convert(
        text: "processes: { a: { command: ./a, shutdown: { \(text) } } }",
        file: "process-compose.yaml"))
    #expect(
      configuration.workers.map(\.policy.terminate.grace) == [.seconds(grace)], "\(imported)")
  }

  @Test
  func `An import of process-compose translates Dormouse's keys, and a note names the others`()
    throws
  {
    let result = ProcessComposeImport.convert(
      text: Self.compose, file: "process-compose.yaml")
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let (text, imported) = try readImport(result, mayWarn: true)
    let (db, web, job) = (imported.workers[0], imported.workers[1], imported.workers[2])
    #expect(db.command == ["postgres", "-D", "data"])
    #expect(db.directory == "/srv/")
    #expect(db.environment == ["GLOBAL": "1", "SHARED": "old"])
    #expect(
      db.readiness
        == .probe(
          Probe(
            .exec(["bash", "-c", "pg_isready -h $PGHOST"]), initialDelay: .seconds(5),
            period: .seconds(2), failureThreshold: 30)))
    #expect(
      db.restart
        == RestartRules(
          .always, backoff: Backoff(initial: .seconds(2), max: .seconds(2), factor: 1),
          giveUp: .init(restarts: 4, window: .seconds(86_400))))
    #expect(db.stopCommand == ["bash", "-c", "pg_ctl stop -D $PGDATA"])
    #expect(db.stopSignal == 2 && db.policy.terminate.grace == .seconds(20))
    #expect(web.command == ["bash", "-c", "./web --port 8080 | tee ${LOG}"])
    #expect(web.environment == ["GLOBAL": "1", "SHARED": "new $5 "])
    #expect(web.dependsOn == [Dependency("db", .ready), Dependency("job", .exitedOK)])
    #expect(web.liveness == Probe(.http(.init(port: 8080, path: "/health"))))
    #expect(web.output == WorkerOutput(file: "web.log", maxSize: .megabytes(2), keep: 4))
    #expect(job.command == ["bash", "-c", "cd /tmp\n./job"])
    #expect(job.readiness == .logLine("ready to accept"))
    #expect(!job.autostart && job.restart == RestartRules())

    for snippet in [
      "# The database", "groups: data", "shutdown.parent_only", "`ghost`", "max_age_days", "is_tty",
      "exit_on_failure", "max_restarts",
    ] {
      #expect(text.contains(snippet), "\(snippet)")
    }
  }

  @Test func `An import of process-compose fills templates in and makes a worker of each replica`()
    throws
  {
    let result = ProcessComposeImport.convert(
      text: """
        vars: { PORT: 8000, NAME: site }
        processes:
          web:
            command: "./web --port {{.PORT}} --name {{ .NAME }} --copy {{.PC_REPLICA_NUM}}"
            vars: { NAME: shop }
            environment: [ "A=1", "- C" ]
            replicas: 12
          odd: { command: "./odd {{ if .X }}1{{ end }}", depends_on: { web: {} } }
          nightly: { command: ./nightly, schedule: { cron: "0 2 * * *" } }
        """, file: "process-compose.yaml")
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let (text, imported) = try readImport(result, mayWarn: true)
    #expect(imported.workers.count == 14)
    #expect(imported.workers[0].name == "web-00" && imported.workers[11].name == "web-11")
    #expect(
      imported.workers[11].command == [
        "./web", "--port", "8000", "--name", "shop", "--copy", "11",
      ])
    #expect(imported.workers[11].environment == ["A": "1", "PC_REPLICA_NUM": "11"])
    #expect(imported.workers[11].autostart)
    let (odd, nightly) = (imported.workers[12], imported.workers[13])
    #expect(!odd.autostart && !nightly.autostart)
    #expect(odd.dependsOn.map(\.worker) == (imported.workers[..<12].map(\.name)))
    for snippet in ["`{{ end }}`", "`- C`", "`schedule`"] {
      #expect(text.contains(snippet), "\(snippet)")
    }
  }

  @Test
  func `An import of Docker's compose file keeps what a plain process can do, and starts nothing`()
    throws
  {
    let result = ComposeImport.convert(
      text: """
        services:
          web:
            image: shop/web:3
            command: python3 app.py --port 8000
            environment: { A: 1, B: "two words" }
            depends_on: { db: { condition: service_healthy } }
            restart: on-failure:3
            stop_signal: SIGINT
            stop_grace_period: 20s
            ports: [ "8000:8000" ]
            healthcheck: { test: [CMD-SHELL, "curl -f localhost:8000"], interval: 30s, retries: 3 }
          db: { image: "postgres:16", volumes: [ "data:/var/lib" ] }
        volumes: { data: {} }
        """, file: "compose.yaml")
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let (text, imported) = try readImport(result, mayWarn: true)
    let (web, db) = (imported.workers[0], imported.workers[1])
    #expect(web.command == ["python3", "app.py", "--port", "8000"])
    #expect(web.environment == ["A": "1", "B": "two words"])
    #expect(web.dependsOn == [Dependency("db", .ready)])
    #expect(web.restart.condition == .onFailure && web.stopSignal == 2)
    #expect(web.policy.terminate.grace == .seconds(20))
    #expect(
      web.readiness
        == .probe(
          Probe(
            .exec(["sh", "-c", "curl -f localhost:8000"]), period: .seconds(30),
            failureThreshold: 3)))
    #expect(!web.autostart && !db.autostart && db.command == ["false"])
    for snippet in ["shop/web:3", "`ports`", "`volumes`", "postgres:16"] {
      #expect(text.contains(snippet), "\(snippet)")
    }
    #expect(ComposeImport.convert(text: "a: b", file: "compose.yaml").value == nil)
  }

  @Test func `The import of a process-compose file with a duplicate key reports its position`() {
    let text = "processes:\n  a:\n    command: x\n    command: y\n"
    #expect(
      ProcessComposeImport.convert(text: text, file: "pc.yaml").rendered == """
        pc.yaml:4:5: error: `command` is given twice; the first is in line 3
            command: y
            ^
        """)
  }

  @Test func `An import refuses a text that isn't a process-compose file`() {
    for text in [
      "a: b", "[1]", "processes:\n  a: 1", "processes: { a: { working_dir: x } }", "a: [",
    ] {
      let result = ProcessComposeImport.convert(text: text, file: "p.yaml")
      #expect(result.value == nil && !result.errors.isEmpty, "\(text)")
    }
  }

  @Test func `Odd texts in an imported file can't add workers or change the meaning of values`()
    throws
  {
    let result = ProcessComposeImport.convert(
      text: """
        processes:
          a:
            command: "echo 'it''s' \\"x: y\\" # no comment \\u0085 \\u2028 ${"
            description: "one\\ntwo: { evil: true }"
            environment: [ "A=: #{ ", "B=\\u0007", "=bad", "C= - ", "D=~", "E=yes", "F=1e3" ]
        """, file: "p.yaml")
    let imported = try readImport(result, mayWarn: true).1
    #expect(imported.workers.map(\.name) == ["a"])
    #expect(
      imported.workers[0].command.last
        == "echo 'it''s' \"x: y\" # no comment \u{85} \u{2028} ${")
    #expect(
      imported.workers[0].environment == [
        "A": ": #{ ", "B": "\u{7}", "C": " - ", "D": "~", "E": "yes", "F": "1e3",
      ])
  }
}
