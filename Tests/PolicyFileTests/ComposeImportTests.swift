import Policy
import PolicyFile
import Testing

@Suite("The import of Docker's compose files") struct ComposeImportTests {
  private func text(_ services: String) throws -> String {
    let result = ComposeImport.convert(text: services, file: "compose.yaml")
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    return try #require(result.value).text
  }

  /// What the daemon reads of it.
  private func read(_ services: String, _ environment: [String: String] = [:]) throws
    -> [WorkerConfiguration]
  {
    let text = try text(services)
    let result = ConfigurationFile.parse(
      text: text, file: "dormouse.yaml", library: library, environment: environment)
    #expect(result.errors.isEmpty, "\(result.rendered) \(text)")
    return try #require(result.value).workers
  }

  @Test("Variables of a command stay variables, and a blank in a fallback ends no word")
  func variables() throws {
    let services = """
      services:
        a: { command: "./run --x=${X:-1 2} --y=${Y:?need Y} --z=$Z --c=$$HOME --d=$${D}", environment: { E: "${X}", F: a$$b } }
      """
    let text = try text(services)
    #expect(text.contains("`.env`"), "\(text)")
    let worker = try #require(try read(services, ["Y": "why"]).first)
    #expect(worker.command == ["./run", "--x=1 2", "--y=why", "--z=", "--c=$HOME", "--d=${D}"])
    #expect(worker.environment == ["E": "", "F": "a$b"])
  }

  @Test("Times with two units, replicas, memory and `unless-stopped` are taken over")
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

  @Test("Keys of a merged mapping count, and those that nothing takes over are noted")
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

  @Test("A file of variables that may be missing is noted")
  func optionalFile() throws {
    let text = try text(
      "services: { a: { command: x, env_file: [{ path: .env.local, required: false }] } }")
    #expect(text.contains("`env_file` .env.local") && !text.contains("env_file:"), "\(text)")
  }

  @Test("A compose file is recognized by its services, whatever its name is")
  func recognized() {
    #expect(ComposeImport.hasServices("services: { a: { command: x } }"))
    #expect(!ComposeImport.hasServices("processes: { a: { command: x } }\nservices: {}"))
    #expect(!ComposeImport.hasServices("a: ["))
  }
}
