import Control
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Settings and removal of workers of `run`") struct UndeclaredWorkersTests {
  private typealias Verb = ControlRequest.Verb

  private let world = ControlWorld()
  private var host: FakeControlHost { world.host }

  @Test("The settings of `run` are the worker's, and a wrong one is refused")
  func runSettings() throws {
    var request = ControlRequest(id: 7, verb: .run, worker: "job")
    request.launch = LaunchSpecification(
      command: ["/bin/true"], directory: "/", environment: ["PORT": "8080"],
      settings: ["restart=always", "readiness.tcp=${PORT}", "hibernate.after=5m"])
    _ = world.ask(request)
    let launched = try #require(host.launched.first?.configuration)
    #expect(launched.restart.condition == .always && launched.readiness == .tcp(8080))
    #expect(launched.policy.hibernate.after == .seconds(300))
    #expect(launched.policy.name == "test", "over the machine's policy")
    host.answer(.done, "job is running")
    request.launch?.settings = ["restart=sometimes"]
    let refused = try world.only(world.ask(request))
    #expect(refused.result == .badRequest && refused.text.contains("restart=sometimes"))
    #expect(host.launched.count == 1)
  }

  @Test("A worker of `run` is removed when it has ended; declared, adopted and wrapped ones aren't")
  func removes() throws {
    host.add("web")
    for name in ["db", "job", "redis"] {
      host.known[WorkerID(name)] = WorkerFacts(policy: LifecyclePolicy(name: "test"))
      host.known[WorkerID(name)]?.isDeclared = name == "db"
    }
    host.known[WorkerID("web")]?.isDeclared = false
    host.known[WorkerID("redis")]?.isAdopted = true
    host.wrapped = ["clangd-4"]
    for verb in [Verb.remove, .removeRunning] {
      for (heard, result, words) in [
        (world.ask(verb), ControlResponse.Result.badRequest, "needs a worker"),
        (world.ask(verb, "none"), .unknownWorker, "no worker named none"),
        (world.ask(verb, "db"), .refused, "db is in the configuration"),
        (world.ask(verb, "redis"), .refused, "`dormouse release redis`"),
        (world.ask(verb, "clangd-4"), .refused, "wrapped"),
      ] {
        let response = try world.only(heard)
        #expect(response.result == result && response.text.contains(words), "\(response)")
      }
    }
    #expect(try world.only(world.ask(.remove, "web")).text.contains("`dormouse rm -f web`"))
    #expect(host.calls.isEmpty)
    #expect(try world.only(world.ask(.remove, "job")).text == "job and its log are removed")
    host.whyLogStays = "the disk doesn't answer"
    let forced = world.ask(.removeRunning, "web")
    #expect(host.calls == ["remove job", "person: stop web", "stop web"])
    host.answer(.done, "web is stopped")
    #expect(
      try world.only(forced).text
        == "web is removed, but its log stays: the disk doesn't answer")
    #expect(host.calls.last == "remove web")
  }
}
