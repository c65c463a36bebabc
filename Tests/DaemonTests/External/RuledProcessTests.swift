import Glibc
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("A process that a rule adopts") struct RuledProcessTests {
  private let world: AdoptionWorld
  private var externals: ExternalAdoption { world.externals }

  init() throws { world = try AdoptionWorld() }

  private static func rule() -> AdoptionRule {
    var rule = AdoptionRule(name: "r", matches: [], policy: LifecyclePolicy(name: "own"))
    rule.importance = 9
    rule.mayTerminate = true
    return rule
  }

  private func adopt(_ process: ProcessIdentity) -> Recorded<String?> {
    let heard = Recorded<String?>()
    externals.adopt(RuledProcess(process: process, rule: Self.rule())) {
      heard.all.append($0?.text)
    }
    return heard
  }

  @Test func `It gets its rule's policy, shadow mode, importance and permission`() throws {
    let candidate = try AdoptionWorld.process()
    let heard = adopt(candidate.root.identity)
    try world.examined(candidate)
    #expect(heard.all == [nil])
    let worker = try #require(world.workers[WorkerID("r-\(AdoptionWorld.pid)")])
    #expect(worker.external?.rule == "r" && worker.external?.mayBeTerminated == true)
    #expect(worker.profile.rule == "r" && worker.profile.importance == 9)
    #expect(worker.profile.policy.name == "own" && worker.profile.policy.mode == .shadow)
    #expect(world.isLogged("(rule r, mode shadow)\n"))
  }

  @Test func `A process that got the pid after the scan isn't adopted`() throws {
    let candidate = try AdoptionWorld.process()
    let heard = adopt(
      ProcessIdentity(pid: AdoptionWorld.pid, startTime: candidate.root.startTime - 1))
    try world.examined(candidate)
    #expect(
      heard.all == ["process \(AdoptionWorld.pid) has ended"] && world.workers.count == 0)
  }

  @Test func `A release by request is recorded, and one by the daemon isn't`() throws {
    world.base.rules.follow([Self.rule()])
    let candidate = try AdoptionWorld.process()
    let path = world.base.state.path + "/released"
    _ = adopt(candidate.root.identity)
    try world.examined(candidate)
    let id = WorkerID("r-\(AdoptionWorld.pid)")
    externals.release(id) { _ in }
    #expect(world.workers.count == 0 && world.base.files.texts[path] == nil)
    _ = adopt(candidate.root.identity)
    try world.examined(candidate)
    let process = try #require(world.workers[id]?.process?.identity)
    let heard = world.askRelease(id.name)
    #expect(heard.responses.first?.text.contains("the rule r doesn't adopt it again") == true)
    #expect(
      world.base.files.texts[path]?.contains("\n\(process.pid) \(process.startTime) ") == true)
  }

  @Test func `A preview of rules is answered once, also if processes can't be read`() throws {
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

  @Test func `A worker of a removed rule is in shadow mode under the next daemon`() {
    let machine = LifecyclePolicy(name: "machine")
    var rule = Self.rule()
    rule.mode = .manage
    #expect([rule].policy(ofRule: nil, machine) == machine)
    #expect([rule].policy(ofRule: "r", machine) == rule.policy)
    let other = [rule].policy(ofRule: "x", machine)
    #expect(other.mode == .shadow && other.name == "machine")
  }
}
