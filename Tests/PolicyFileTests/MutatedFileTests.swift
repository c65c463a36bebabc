import TestSupport
import Testing

@testable import PolicyFile

/// Tests random changes of valid files of other programs. No reader may trap, which would end this
/// process after its seed was printed. The result of an import is always YAML.
@Suite("Damaged files of others") struct MutatedFileTests {
  private static let compose = """
    x-env: &env { A: "${X:-${Y:-z}}", B: "$$x" }
    include: [other.yml, { path: [a.yml] }]
    services:
      db: { image: postgres, command: --max=5, healthcheck: { test: [CMD, pg, "$$U"], retries: 3 } }
      app:
        <<: { restart: always }
        entrypoint: /e.sh "a b" 'c'
        command: run ${D:+--debug} | cat
        environment: { <<: *env, KEY: }
        depends_on: { db: { condition: service_healthy } }
        deploy: { replicas: 2, resources: { limits: { memory: 5M } } }
        stop_grace_period: 1m30s
    """
  private static let processCompose = """
    vars: { A: 1 }
    environment: ["P=${Q}"]
    processes:
      a: { command: "run {{.A}} $X", replicas: 3, working_dir: "${D}/x", depends_on: { b: {} } }
      b: { entrypoint: [x, "$$y"], readiness_probe: { http_get: { port: 80, path: p } } }
    """
  private static let unit = #"""
    [Unit]
    Description=x %i
    [Service]
    Type=notify
    ExecStart=-/bin/a "b \x41\101\u00e9" $OPTS ${V} \; 'c'
    Environment=A=1 "B=2 3"
    Restart=always
    RestartSec=1min 30s
    LimitNOFILE=10:20
    StandardError=append:/x
    """#
  private static let supervisor = """
    [supervisord]
    environment=G="1"
    [program: a]
    command=/bin/a %(ENV_X)s '%(process_num)02d' ; x
      --more # y
    numprocs=3
    environment=A="x,y",B=z
    [group:g]
    programs=a
    [include]
    files=x
    """
  private static let pm2 = #"""
    // A comment
    module.exports = {
      apps: [
        { name: 'api', script: "./a.js", args: ['--port', 80, "a b"], instances: 2, cwd: `/srv`,
          env: { A: 'x$y', "B": null },
          max_memory_restart: '300M', kill_timeout: 3000, watch: false },
        { script: 'npm start', interpreter: 'none', autorestart: !0, /* c */ },
      ], deploy: {},
    };
    """#
  private static let quadlet = #"""
    [Unit]
    Description=x %i
    [Container]
    Image=docker.io/x
    Entrypoint=["/e.sh", "a "b"]
    Exec=--port 80 $OPTS '%n'
    Environment=A=1 "B=2 3"
    PublishPort=8080:80
    HealthCmd=curl -f x | y
    HealthInterval=1m30s
    [Service]
    Restart=always
    """#
  private static let variables = """
    # comment
    export A = "two\\n
    lines \\" $HOME" # x
    B='raw
    '
    C=plain # x
    PORT=80
    """

  private static func convert(_ name: String, _ text: String) -> ParseResult<ImportedConfiguration>?
  {
    switch name {
    case "compose":
      ComposeImport.convert(text: text, file: "compose.yaml", environmentFile: variables)
    case "process-compose":
      ProcessComposeImport.convert(text: text, file: "p.yaml", environmentFile: variables)
    case "unit":
      UnitImport.convert(
        unit: "a@b.service", files: [.init(path: "a@.service", text: text)],
        pathExists: { _ in true })
    case "supervisor": SupervisorImport.convert(text: text, file: "s.conf", directory: "/srv")
    case "pm2": PM2Import.convert(text: text, file: "ecosystem.config.js")
    case "quadlet": QuadletImport.convert(text: text, file: "a.container") { _ in true }
    case "procfile": ProcfileImport.convert(text: text, file: "Procfile", environmentFile: text)
    default: nil
    }
  }

  @Test(
    "An import ends with errors or with a configuration that is YAML",
    arguments: [
      ("compose", compose), ("process-compose", processCompose), ("unit", unit),
      ("supervisor", supervisor), ("pm2", pm2.replacing("!0", with: "true")),
      ("pm2", pm2), ("quadlet", quadlet),
      ("procfile", "web: run $PORT\nrelease: a && b\n# c\nd:\n"),
    ])
  func imports(name: String, text: String) throws {
    var random = TestRandom(runSeed: TestRandom.runSeed, for: name)
    for round in 0..<250 {
      let bytes = round == 0 ? Array(text.utf8) : random.mutated(Array(text.utf8))
      let damaged = String(decoding: bytes, as: UTF8.self)
      let result = try #require(Self.convert(name, damaged))
      #expect(result.value != nil || !result.errors.isEmpty, "\(damaged)")
      guard let imported = result.value else { continue }
      let read = ConfigurationFile.parse(
        text: imported.text, file: "dormouse.yaml", library: library, environment: [:])
      let syntax = read.errors.filter { $0.message.hasPrefix("syntax:") }
      #expect(syntax.isEmpty, "\(damaged)\n\(imported.text)")
    }
  }

  @Test func `Characters that YAML forbids are written as escapes`() throws {
    let odd = "\u{1}\u{7F}\u{80}\u{85}\u{9F}\u{A0}\u{FFFE}\u{FFFF}\u{10FFFF}"
    let text = "workers: { w: { command: [\(YAMLText.scalar(odd))] } }"
    let read = ConfigurationFile.parse(
      text: text, file: "dormouse.yaml", library: library, environment: [:])
    #expect(read.errors.isEmpty, "\(read.rendered)")
    #expect(read.value?.workers.first?.command == [odd])
  }

  @Test func `A file of variables gives variables or errors`() {
    var random = TestRandom()
    for _ in 0..<500 {
      let text = String(decoding: random.mutated(Array(Self.variables.utf8)), as: UTF8.self)
      let result = EnvironmentFile.parse(text, file: "a.env")
      for (name, value) in result.value ?? [:] {
        #expect(!name.isEmpty && !name.contains("=") && !value.contains("\0"), "\(text)")
      }
    }
  }
}
