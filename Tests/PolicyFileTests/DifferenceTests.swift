import Policy
import Testing

@testable import PolicyFile

@Suite struct `Differences` {
  @Test func `The differences of two policies are the values that differ, with their meaning`()
    throws
  {
    let old = LifecyclePolicy()
    var new = old
    #expect(PolicyFile.differences(from: old, to: new).isEmpty)
    new.name = "other"
    new.background.suspendAfter = .seconds(2)
    new.hibernate.maxFootprint = nil
    new.terminate.order = [.recency]
    let differences = PolicyFile.differences(from: old, to: new)
    #expect(
      differences == [
        PolicyDifference(
          key: "background.suspend_after", left: "10s", right: "2s",
          meaning: "workers are suspended sooner in the background"),
        PolicyDifference(
          key: "hibernate.max_footprint", left: "16MB", right: "unlimited",
          meaning: "workers of any size are hibernated"),
        PolicyDifference(
          key: "terminate.order", left: "[band, footprint]", right: "[recency]", meaning: nil),
      ])
    let back = PolicyFile.differences(from: new, to: old)
    #expect(back[0].meaning == "workers run on for longer in the background")
    #expect(back[1].meaning == "fewer workers are small enough to be hibernated")
  }

  @Test func `never is the smallest value of a limit up to which workers hibernate at once`() {
    var small = LifecyclePolicy()
    small.hibernate.atOnceUpTo = .megabytes(16)
    let meaning = { (left: LifecyclePolicy, right: LifecyclePolicy) in
      PolicyFile.differences(from: left, to: right).first?.meaning
    }
    #expect(
      meaning(LifecyclePolicy(), small)
        == "larger workers are hibernated as soon as they are suspended")
    #expect(
      meaning(small, LifecyclePolicy())
        == "small workers wait for hibernate.after, as large ones do")
  }

  @Test func `Changes between two configurations are listed by worker, each once`() throws {
    func read(_ text: String) throws -> DaemonConfiguration {
      let result = configuration(text)
      return try #require(result.value, "\(result.rendered)")
    }
    let old = try read("workers: { a: { command: x }, b: { command: x } }")
    let new = try read(
      """
      policy_overrides: { hibernate: { after: 5s } }
      workers:
        a: { command: x }
        b: { command: y, importance: 3, user: me, policy: { terminate: { grace: 9s } } }
      """)
    #expect(
      PolicyFile.summary(from: old.policy, to: new.policy)
        == "policy ios-5: hibernate.after 30s → 5s")
    let machine = (old: old.policy, new: new.policy)
    #expect(new.workers[0].changes(from: old.workers[0], machine: machine).isEmpty)
    let changes = new.workers[1].changes(from: old.workers[1], machine: machine)
    #expect(
      changes.map(\.text) == ["terminate.grace 2s → 9s", "importance 0 → 3", "command", "user"])
    #expect(changes.map(\.atLaunch) == [false, false, true, true])
    let server = try #require(library.load("server").value)
    #expect(
      PolicyFile.summary(from: old.policy, to: server)?.hasPrefix("policy ios-5 → server (") == true
    )
    #expect(PolicyFile.summary(from: server, to: server) == nil)
  }

  /// The daemon acts on these changes, so none may be missing.
  @Test func `A change of any key of a worker is noticed`() throws {
    let result = configuration(`Declared workers`.full)
    let workers = try #require(result.value).workers
    var plain = WorkerConfiguration(name: "web", command: ["x"], directory: "etc")
    plain.policy = workers[0].policy
    for var worker in workers where worker != plain {
      #expect(!worker.changes(from: plain).isEmpty)
      worker.name = "other"
    }
    let stored = Mirror(reflecting: plain).children.compactMap(\.label)
    #expect(
      stored == [
        "name", "command", "directory", "environment", "environmentFiles", "user", "group",
        "groups", "umask",
        "limits", "importance", "autostart", "dependsOn", "shed", "readiness", "notify", "watchdog",
        "fdstore", "liveness", "restart", "stopCommand", "stopSignal", "reloadSignal", "output",
        "listen",
        "wakeAt", "wakeWith", "healthChecksWhileAsleep", "hooks", "settings", "_policy",
      ], "`changes` and `WorkerRenderer` must know a new field, too")
  }
}
