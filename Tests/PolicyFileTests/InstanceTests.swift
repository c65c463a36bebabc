import Policy
import Testing

@testable import PolicyFile

@Suite("Entries that declare several workers") struct InstanceTests {
  private func workers(_ text: String) throws -> [WorkerConfiguration] {
    let result = configuration(text)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    return try #require(result.value).workers
  }

  @Test func `Each instance is a worker with its name and its variables`() throws {
    let instances = try workers(
      """
      workers:
        bot:
          instances: { alice: { PORT: 8001 }, bob: { PORT: 8002 } }
          command: [bot, --for, "${INSTANCE}", "--port=${PORT}"]
          environment: { NAME: "${INSTANCE}!", PORT: "1" }
          listen: "127.0.0.1:${PORT}"
          groups: chat
        plain: { command: sleep 1 }
      """)
    #expect(instances.map(\.name) == ["bot-alice", "bot-bob", "plain"])
    #expect(instances[0].command == ["bot", "--for", "alice", "--port=1"])
    #expect(instances[0].environment == ["INSTANCE": "alice", "PORT": "1", "NAME": "alice!"])
    #expect(instances[1].listen.map(\.address.text) == ["127.0.0.1:8002"])
    #expect(instances[1].groups == ["chat", "bot"] && instances[2].groups == [])
    #expect(instances[2].environment == [:])
  }

  @Test func `Replicas are numbered from 1 on, and there may be none`() throws {
    let instances = try workers(
      "workers: { a: { replicas: 3, command: 'run ${INSTANCE}' }, b: { replicas: 0, command: x } }")
    #expect(instances.map(\.name) == ["a-1", "a-2", "a-3"])
    #expect(instances.map(\.command) == [["run", "1"], ["run", "2"], ["run", "3"]])
  }

  @Test func `An entry's name stands for all its instances in depends_on and wake_with`() throws {
    let instances = try workers(
      """
      workers:
        db: { instances: [a, b], command: db, wake_with: [db] }
        web: { command: web, depends_on: { db: started }, wake_with: [db] }
        job: { replicas: 2, command: job, depends_on: [db, web] }
      """)
    #expect(instances[0].wakeWith == ["db-b"] && instances[1].wakeWith == ["db-a"])
    let web = instances[2]
    #expect(web.dependsOn.map(\.worker) == ["db-a", "db-b"] && web.wakeWith == ["db-a", "db-b"])
    #expect(web.dependsOn.allSatisfy { $0.condition == .started })
    #expect(instances[4].dependsOn.map(\.worker) == ["db-a", "db-b", "web"])
  }

  @Test(
    "What is wrong in an entry with instances is reported once, where it is",
    arguments: [
      ("{ replicas: 30, command: x, imporatnce: 4 }", "1:43: error: unknown key `imporatnce`"),
      ("{ replicas: 2000, command: x }", "must be"),
      ("{ replicas: 2, instances: [a], command: x }", "are both there"),
      ("{ instances: [a, a], command: x }", "given twice"),
      ("{ instances: [a b], command: x }", "an instance's name"),
      ("{ instances: { a: { 'X=': 1 } }, command: x }", "can't be a variable's name"),
      ("{ replicas: 3, command: x, listen: 8080 }", "is taken by `a-1`"),
      ("{ replicas: 2, command: 'x ${NONE}' }", "needs the variable `NONE`"),
      ("{ replicas: 2, command: x, depends_on: [a] }", "depends on itself"),
    ])
  func wrong(entry: String, message: String) {
    let result = configuration("workers: { a: \(entry) }")
    #expect(result.rendered.contains(message), "\(result.rendered)")
    let errors = result.diagnostics.filter { $0.severity == .error }
    #expect(errors.count == (entry.contains("listen") ? 2 : 1), "\(result.rendered)")
  }

  @Test func `An entry without replicas is checked like any other`() {
    let result = configuration("workers: { a: { replicas: 0, command: 'x ${INSTANCE}', nmae: 1 } }")
    #expect(result.rendered.contains("unknown key `nmae`"), "\(result.rendered)")
    #expect(configuration("workers: { a: { replicas: 0, command: 'x ${INSTANCE}' } }").value != nil)
  }

  @Test func `An instance and a worker can't have the same name`() {
    let result = configuration(
      "workers: { a: { replicas: 2, command: x }, a-2: { command: x }, b: { command: x } }")
    #expect(result.rendered.contains("the worker `a-2` is declared twice"), "\(result.rendered)")
  }

  @Test func `Without instances, ${INSTANCE} is a variable that doesn't exist`() {
    #expect(configuration("workers: { a: { command: 'x ${INSTANCE}' } }").value == nil)
  }

  @Test("An entry that is rendered keeps its groups, and a changed group applies at once")
  func rendered() throws {
    let worker = try #require(
      workers("workers: { a: { command: x, groups: [one, two] } }").first)
    let again = try workers("workers:\n" + ConfigurationFile.render(worker))
    #expect(again.first?.groups == ["one", "two"])
    var other = worker
    other.groups = []
    #expect(other.changes(from: worker) == [WorkerChange("groups")])
  }
}
