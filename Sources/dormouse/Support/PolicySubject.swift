import Control
import Policy
import PolicyFile

/// The argument of a `policy` verb: a policy, or a configuration with its workers.
struct PolicySubject {
  private let machine: LifecyclePolicy
  private let origins: Origins
  /// The workers of a configuration; nil for a policy.
  private let workers: [WorkerConfiguration]?

  /// Returns the path of the configuration that a daemon would read by default.
  static func defaultConfiguration() throws -> String {
    let path = DefaultPaths.ofThisProcess().configuration
    guard ConfigurationFiles.exist(at: path) else {
      throw CommandFailure(
        .badConfiguration, "no configuration at \(escaped(path)); name a file or a policy")
    }
    return path
  }

  /// Loads the subject and reports its mistakes. An error ends the verb.
  static func load(_ nameOrPath: String) throws -> PolicySubject {
    let check = PolicyCheck.ofThisProcess()
    if check.isConfiguration(nameOrPath) {
      let read = try value(check.configuration(nameOrPath))
      return PolicySubject(machine: read.policy, origins: read.origins, workers: read.workers)
    }
    let loaded = try value(check.policy(nameOrPath))
    return PolicySubject(machine: loaded.policy, origins: loaded.origins, workers: nil)
  }

  private static func value<Value>(_ result: ParseResult<Value>) throws -> Value {
    // Only `policy check` prints warnings.
    PolicyCheck.complain(result.errors)
    guard let value = result.value else {
      throw CommandFailure(.badConfiguration, "nothing shown: fix the errors above")
    }
    return value
  }

  /// Returns the policy of the machine, or that of a worker.
  func policy(of worker: String?) throws -> LifecyclePolicy {
    guard let worker else { return machine }
    guard let workers else {
      throw CommandFailure(
        .usage, "a policy has no workers: name a configuration, or leave --worker out")
    }
    if let match = workers.first(where: { $0.name == worker }) { return match.policy }
    let hint = hint(for: worker, among: workers.map(\.name))
    throw CommandFailure(
      .unknownWorker, "the configuration has no worker `\(escaped(worker))`\(hint)")
  }

  func values(of worker: String?) throws -> [EffectivePolicy.Value] {
    EffectivePolicy(try policy(of: worker), origins: origins, worker: worker).values
  }
}
