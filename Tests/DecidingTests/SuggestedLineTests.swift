import Policy
import PolicyFile
import Testing

@testable import Deciding

@Suite("Lines of YAML in suggestions") struct SuggestedLineTests {
  /// All settings that can be suggested.
  private static let settings: [PolicyChange.Setting] = [
    ("foreground.idle_after", "15s"), ("background.suspend_after", "never"),
    ("background.suspend_after", "2m"), ("hibernate.after", "1h"), ("hibernate.after", "never"),
    ("hibernate.cooldown", "5s"), ("hibernate.max_footprint", "64MB"),
    ("hibernate.max_footprint", "unlimited"), ("hibernate.min_footprint", "1MB"),
    ("hibernate.enabled", "true"), ("hibernate.only_if_faster_than_relaunch", "false"),
    ("hibernate.disk.daily_writes", "200GB"), ("hibernate.disk.budget", "4GB"),
    ("terminate.order", "[band, regret]"),
  ].map { PolicyChange.Setting(key: $0, value: $1) }

  private static var pairs: [[PolicyChange.Setting]] {
    settings.flatMap { one in
      [[one]] + settings.filter { $0.key != one.key }.map { [one, $0] }
    }
  }

  private func read(_ text: String) throws -> DaemonConfiguration {
    let result = ConfigurationFile.parse(
      text: text, file: "etc/dormouse.yaml", library: .builtIn, environment: [:])
    #expect(result.diagnostics.isEmpty, "\(text)\n\(result.diagnostics)")
    return try #require(result.value, "\(text)")
  }

  @Test("The reader accepts each line for the machine, and gives the values that it says")
  func machine() throws {
    let base = try read("workers: {}").policy
    for settings in Self.pairs {
      let change = PolicyChange(settings)
      let policy = try read("\(change.yaml())\nworkers: {}\n").policy
      #expect(policy == (try change.applied(to: base)), "\(change.yaml())")
      try expect(settings, in: policy)
    }
  }

  @Test(
    "The reader accepts each line for a worker, whatever its name, and returns the line's values",
    arguments: ["web", "true", "10", "null", "a.b-c_d"])
  func worker(_ name: String) throws {
    let possible = Self.pairs.filter {
      PolicyChange($0).isPossible(in: LifecyclePolicy(), ofOneWorker: true)
    }
    #expect(possible.count > 50)
    for settings in possible {
      let line = PolicyChange(settings).yaml(worker: name)
      // The operator merges the line with the worker's entry.
      #expect(line.hasSuffix(" } } }"))
      let whole = "\(line.dropLast(4)), command: [sleep, \"1\"] } }\n"
      let worker = try #require(try read(whole).workers.first)
      #expect(worker.name == name)
      try expect(settings, in: worker.policy)
    }
  }

  @Test func `A key that applies to all workers together isn't suggested for one`() {
    for setting in Self.settings {
      let change = PolicyChange([setting])
      let isOfAll = setting.key.hasPrefix("hibernate.disk") || setting.key == "terminate.order"
      #expect(change.isPossible(in: LifecyclePolicy(), ofOneWorker: true) == !isOfAll, "\(setting)")
      #expect(change.isPossible(in: LifecyclePolicy(), ofOneWorker: false), "\(setting)")
    }
  }

  private func expect(_ settings: [PolicyChange.Setting], in policy: LifecyclePolicy) throws {
    let values = PolicyFile.values(of: policy)
    for setting in settings {
      let text = try #require(values.first { $0.path == setting.key }?.text, "\(setting.key)")
      #expect(text == setting.value, "\(setting.key)")
    }
  }
}
