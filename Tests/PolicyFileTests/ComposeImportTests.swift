import Policy
import PolicyFile
import Testing

@Suite("The import of Docker's compose files") struct ComposeImportTests {
  private func text(_ services: String, beside: String? = nil) throws -> String {
    let result = ComposeImport.convert(
      text: services, file: "compose.yaml", environmentFile: beside)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    return try #require(result.value).text
  }

  /// Returns the worker that the daemon reads from the imported text.
  private func read(
    _ services: String, _ environment: [String: String] = [:], beside: String? = nil
  ) throws -> [WorkerConfiguration] {
    let result = ComposeImport.convert(
      text: services, file: "compose.yaml", environmentFile: beside)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    return try readImport(result, environment: environment, mayWarn: true).1.workers
  }

  @Test("Variables of a command stay variables, and a blank in a fallback ends no word")
  func variables() throws {
    let services = """
      services:
        a:
          command: "./run --x=${X:-1 2} --y=${Y:?need Y} --z=$Z --c=$$HOME --d=$${D}"
          environment: { E: "${X}", F: a$$b }
      """
    let text = try text(services)
    #expect(text.contains("`.env`"), "\(text)")
    let worker = try #require(try read(services, ["Y": "why"]).first)
    #expect(worker.command == ["./run", "--x=1 2", "--y=why", "--z=", "--c=$HOME", "--d=${D}"])
    #expect(worker.environment == ["E": "", "F": "a$b"])
  }

  @Test("A service starts by itself if its program is here, and so are those that it needs")
  func started() throws {
    let services = """
      services:
        web: { image: shop, command: ./web --port 1, depends_on: [cache] }
        cache: { image: redis, command: redis-server }
        jobs: { image: shop, command: ./jobs, depends_on: [db] }
        later: { image: shop, command: ./web, depends_on: [jobs] }
        db: { image: postgres }
        odd: { image: odd, command: odd-server }
        inside: { image: shop, command: ./web, working_dir: /app }
        shell: { image: shop, command: "./web && ./web" }
      """
    let result = ComposeImport.convert(text: services, file: "compose.yaml") {
      ["./web", "redis-server", "./jobs"].contains($0)
    }
    let (text, configuration) = try readImport(result, mayWarn: true)
    let workers = configuration.workers
    #expect(workers.filter(\.autostart).map(\.name) == ["web", "cache"], "\(text)")
    for reason in [
      "it needs `db`, which isn't", "it needs `jobs`, which isn't", "its command is missing",
      "`odd-server` isn't a program on this machine", "its directory is in the image",
      "its command needs a shell",
    ] {
      // A comment is broken into lines, which are joined here.
      let unwrapped = text.replacing("\n    #", with: "")
      #expect(unwrapped.contains("Not started by itself: \(reason)"), "\(reason): \(text)")
    }
  }

  @Test("Times with two units, replicas, memory and `unless-stopped` are imported")
  func values() throws {
    let workers = try read(
      """
      services:
        a:
          command: sleep 9
          stop_grace_period: 1m30s
          restart: unless-stopped
          deploy: { replicas: 2, resources: { limits: { memory: 512M } } }
          healthcheck: { test: curl localhost, interval: 1m30s, timeout: 500ms }
      """)
    #expect(workers.map(\.name) == ["a-1", "a-2"])
    let worker = try #require(workers.first)
    #expect(worker.policy.terminate.grace == .seconds(90))
    #expect(worker.restart.condition == .unlessStopped)
    #expect(worker.limits.memory == .megabytes(512))
    #expect(
      worker.readiness
        == .probe(Probe(.exec(["sh", "-c", "curl localhost"]), period: .seconds(90))))
  }

  @Test("Keys of a merged mapping are imported, and a note names those that can't be")
  func merged() throws {
    let services = """
      x-common: &common { restart: always, logging: {} }
      services:
        a: { <<: *common, command: sleep 9, restart: on-failure }
        b: { <<: *common, command: sleep 9 }
      """
    let workers = try read(services)
    #expect(workers.map(\.restart.condition) == [.onFailure, .always])
    let text = try text(services)
    #expect(text.contains("`logging`") && !text.contains("`<<`"), "\(text)")
  }

  @Test("A service without a command of its own gets none that could run, and each is stopped")
  func stopped() throws {
    let workers = try read(
      """
      services:
        a: { image: postgres }
        b: { build: ., command: null }
        c: { build: ., command: [] }
        d: { build: ., entrypoint: [/bin/d], command: "" }
      """)
    #expect(workers.map(\.command) == [["false"], ["false"], ["false"], ["/bin/d"]])
    #expect(workers.allSatisfy { !$0.autostart })
  }

  @Test func `A file of variables that may be missing gets a note`() throws {
    let text = try text(
      "services: { a: { command: x, env_file: [{ path: .env.local, required: false }] } }")
    #expect(text.contains("`env_file` .env.local") && !text.contains("env_file:"), "\(text)")
  }

  @Test("`$$` in a health check is one `$` of the shell")
  func healthDollars() throws {
    let workers = try read(
      """
      services:
        a: { command: x, healthcheck: { test: ["CMD-SHELL", "check $$USER $${DB} ${HOST:-h}"] } }
        b: { command: x, healthcheck: { test: check $$USER } }
      """)
    let probes = ["check $USER ${DB} h", "check $USER"].map {
      ReadinessRule.probe(Probe(.exec(["sh", "-c", $0])))
    }
    #expect(workers.map(\.readiness) == probes)
  }

  @Test func `Merge keys count at any depth, and those of a merged mapping too`() throws {
    let workers = try read(
      """
      x-restart: &restart { restart: always }
      x-base: &base { <<: *restart, image: app }
      x-env: &env { A: "1", B: "1" }
      x-needs: &needs { db: { condition: service_healthy } }
      x-healthy: &healthy { condition: service_healthy }
      services:
        db: { command: postgres, healthcheck: { test: "true" } }
        redis: { command: redis-server, healthcheck: { test: "true" } }
        app:
          <<: [*base, *restart]
          command: ./app
          environment: { <<: *env, B: "2" }
          depends_on: { <<: *needs, redis: { <<: *healthy } }
      """)
    let app = try #require(workers.last)
    #expect(app.environment == ["A": "1", "B": "2"] && app.restart.condition == .always)
    #expect(Set(app.dependsOn.map(\.worker)) == ["db", "redis"])
    #expect(app.dependsOn.allSatisfy { $0.condition == .ready })
  }

  @Test func `A merge of something that is no mapping is an error with its line`() {
    let result = ComposeImport.convert(
      text: "services:\n  a:\n    <<: x\n    command: y", file: "compose.yaml")
    #expect(result.value == nil)
    #expect(result.rendered.contains("compose.yaml:3:5: error: `<<` needs a mapping"))
  }

  @Test("Commands and entrypoints of one text are split as compose splits them, and no shell runs")
  func splitCommands() throws {
    let workers = try read(
      #"""
      services:
        a: { entrypoint: /entry.sh, command: '--title "a b" --x' }
        b:
          command: |
            serve --charset="utf8"
            --skip-name-resolve --c='$$HOME $${X}' "a\"b" c\ d ''
      """#)
    #expect(
      workers.map(\.command) == [
        ["/entry.sh", "--title", "a b", "--x"],
        [
          "serve", "--charset=utf8", "--skip-name-resolve", "--c=$HOME ${X}", "a\"b", "c d", "",
        ],
      ])
    let result = ComposeImport.convert(
      text: "services:\n  a:\n    command: run 'x", file: "compose.yaml")
    #expect(result.value == nil)
    #expect(result.rendered.contains("compose.yaml:3:14: error: `a.command` has a quote"))
  }

  @Test("Defaults in defaults and `:+` keep their meaning")
  func nestedDefaults() throws {
    let services = """
      services:
        a:
          command: run ${D:+--debug} ${A:-${B:-c d}}
          environment: { F: "${D:+x$Y}", E: "${A-${B:-c$$}}" }
      """
    let without = try #require(try read(services).first)
    #expect(without.command == ["run", "", "c d"])
    #expect(without.environment == ["F": "", "E": "c$"])
    let with = try #require(try read(services, ["D": "1", "B": "b", "Y": "y"]).first)
    #expect(with.environment == ["F": "xy", "E": "b"])
  }

  @Test func `A note names what compose would leave out or read from an image`() throws {
    let text = try text(
      """
      services:
        a: { image: mysql, command: --max_connections=500, scale: "${N}", restart: "${R}" }
        b: { command: "echo a && echo b", depends_on: [elsewhere] }
        c: { command: run, environment: { KEY: } }
      """)
    #expect(text.contains("argument of the image's entrypoint"), "\(text)")
    #expect(text.contains("`&&`") && text.contains("`elsewhere`"), "\(text)")
    #expect(text.contains("`scale`") && text.contains("`restart: ${R}`"), "\(text)")
    #expect(text.contains("`KEY`") && !text.contains("KEY: \"\""), "\(text)")
  }

  @Test("Values of the `.env` beside the file become defaults of the daemon's variables")
  func environmentFile() throws {
    let services = """
      services:
        a:
          command: run ${X} ${Y:-y} ${Z:+z}
          environment: { P: "${PASSWORD}", KEY: , O: "${ODD}" }
      """
    let beside = "X=1 # one\nY=\nZ=2\nPASSWORD='s3cret'\nKEY=k\nODD=a$b\nwrong line\n"
    let worker = try #require(try read(services, ["X": "9"], beside: beside).first)
    #expect(worker.command == ["run", "9", "y", "z"])
    #expect(worker.environment == ["P": "s3cret", "KEY": "k", "O": ""])
    let text = try text(services, beside: beside)
    #expect(text.contains("Keep this file as private as"), "\(text)")
    #expect(text.contains("`ODD`") && text.contains("line 7"), "\(text)")
  }

  @Test func `A file that only includes others names them`() throws {
    let result = ComposeImport.convert(
      text: "include:\n  - redis/compose.yml\n  - path: [a.yml, b.yml]", file: "compose.yaml")
    #expect(result.value == nil)
    #expect(result.rendered.contains("`redis/compose.yml`, `a.yml`, `b.yml`"))
    let text = try text("include: [a.yml]\nservices: { a: { command: x } }")
    #expect(text.contains("import those files, too: `a.yml`"), "\(text)")
  }
}
