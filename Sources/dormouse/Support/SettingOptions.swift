import ArgumentParser
import Control
import Policy
import PolicyFile

/// The option `--set KEY=VALUE` of the verbs that use a policy.
struct SettingOptions: ParsableArguments {
  @Option(
    name: .customLong("set"),
    help: ArgumentHelp(
      "Change a value of the policy, such as hibernate.after=5m; repeatable.",
      valueName: "key=value"), completion: .policyKeys)
  var settings: [String] = []

  var isEmpty: Bool { settings.isEmpty }

  /// Reports a mistake before anything else is done.
  func check() throws { try with { _ in } }

  func applied(to policy: LifecyclePolicy) throws -> LifecyclePolicy {
    try with { (settings) throws(SettingError) in try settings.applied(to: policy) }
  }

  func applied(
    to values: [EffectivePolicy.Value], of policy: LifecyclePolicy
  ) throws -> [EffectivePolicy.Value] {
    try with { (settings) throws(SettingError) in try settings.applied(to: values, of: policy) }
  }

  /// Reads the settings, and calls a function with them.
  private func with<Value>(
    _ body: (PolicySettings) throws(SettingError) -> Value
  ) throws -> Value {
    do throws(SettingError) { return try body(PolicySettings(settings)) } catch {
      throw CommandFailure(.usage, escaped("--set \(error)"))
    }
  }
}

extension CompletionKind {
  /// Completes the keys of a policy, each with `=`.
  static var policyKeys: CompletionKind {
    .custom { _, _, _ in PolicyFile.values(of: LifecyclePolicy()).map { "\($0.path)=" } }
  }

  /// Completes the keys that `run` can set, each with `=`.
  static var workerKeys: CompletionKind {
    .custom { _, _, _ in WorkerSettings.keys.map { "\($0)=" } }
  }
}
