import Control
import Glibc
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("A process that a rule takes") struct RuledProcessTests {
  private let world = FakeExternalHost()
  private let externals: ExternalAdoption

  init() { externals = ExternalAdoption(world.driver, world.workers, host: world) }

  private final class Heard { var refusals: [String?] = [] }

  private static func rule() -> AdoptionRule {
    var rule = AdoptionRule(name: "r", matches: [], policy: LifecyclePolicy(name: "own"))
    rule.importance = 9
    rule.mayTerminate = true
    return rule
  }

  private func adopt(_ process: ProcessIdentity) -> Heard {
    let heard = Heard()
    externals.adopt(RuledProcess(process: process, rule: Self.rule())) {
      heard.refusals.append($0?.text)
    }
    return heard
  }

  private static func own() throws -> ExternalProcess {
    let own = try ProcessStat.read(getpid())
    return ExternalProcess(root: own, tree: ProcessTree(processes: [own]))
  }

  @Test("It becomes a worker with its rule's policy, in shadow mode, importance and permission")
  func adopted() throws {
    let found = try Self.own()
    let heard = adopt(found.root.identity)
    world.examined(.done(.success(found)))
    #expect(heard.refusals == [nil])
    let runtime = try #require(world.workers[WorkerID("r-\(getpid())")])
    #expect(runtime.external?.rule == "r" && runtime.external?.mayBeTerminated == true)
    #expect(runtime.profile.rule == "r" && runtime.profile.importance == 9)
    #expect(runtime.profile.policy.name == "own" && runtime.profile.policy.mode == .shadow)
    #expect(world.lines.last?.hasSuffix("(rule r, mode shadow)") == true)
  }

  @Test("A process that got the pid after the look isn't adopted")
  func another() throws {
    let found = try Self.own()
    let heard = adopt(ProcessIdentity(pid: getpid(), startTime: found.root.startTime - 1))
    world.examined(.done(.success(found)))
    #expect(heard.refusals == ["process \(getpid()) has ended"] && world.workers.count == 0)
  }

  @Test("A refusal, a process of a worker, and a name that is in use are passed on")
  func refused() throws {
    let found = try Self.own()
    let heard = adopt(found.root.identity)
    world.examined(.done(.failure(.refused("it has a watchdog"))))
    #expect(heard.refusals == ["it has a watchdog"])
    world.owners[getpid()] = "web"
    let owned = adopt(found.root.identity)
    world.examined(.done(.success(found)))
    #expect(owned.refusals.first??.contains("belongs to the worker web") == true)
    world.wrapped = ["r-\(getpid())"]
    #expect(adopt(found.root.identity).refusals.first??.contains("wrapped") == true)
  }

  @Test("A release by request is noted with the process and the rule, one by the daemon isn't")
  func released() throws {
    let found = try Self.own()
    _ = adopt(found.root.identity)
    world.examined(.done(.success(found)))
    let id = WorkerID("r-\(getpid())")
    world.workers[id]?.process = try .forTest(id.name)
    var responses: [ControlResponse] = []
    externals.release(ControlRequest(id: 1, verb: .release, worker: id.name)) {
      responses.append($0)
    }
    #expect(responses.first?.text.contains("the rule r doesn't adopt it again") == true)
    #expect(world.calls.last == "released from r")
    _ = adopt(found.root.identity)
    world.examined(.done(.success(found)))
    externals.release(id) { _ in }
    #expect(world.calls.last == "remove \(id)")
  }

  @Test(
    "The verb that previews rules is answered once, also if the processes can't be read in time")
  func preview() throws {
    let control = try ControlWorld()
    let jobs = control.world.services.jobs
    control.world.rules.follow([Self.rule()])
    let response = try control.only(control.ask(.previewAdoption))
    #expect(response.result == .done && response.adoption?.rules == 1)
    let gate = ThreadGate()
    jobs.run(about: "preview of rules", within: .seconds(60), { gate.pass() }) { _ in }
    let late = try control.only(control.ask(.previewAdoption))
    #expect(late.result == .failed && late.adoption == nil)
    gate.open()
  }

  @Test(
    "A worker of an earlier daemon has its rule's policy, and shadow mode if the rule was removed")
  func survivors() {
    let machine = LifecyclePolicy(name: "machine")
    var rule = Self.rule()
    rule.mode = .manage
    #expect([rule].policy(ofRule: nil, machine) == machine)
    #expect([rule].policy(ofRule: "r", machine) == rule.policy)
    let other = [rule].policy(ofRule: "x", machine)
    #expect(other.mode == .shadow && other.name == "machine")
  }
}
