import Control
import Policy
import PolicyFile

/// The argument of a `policy` verb: a policy, or a configuration with its workers.
enum PolicySubject {
  case policy(LoadedPolicy)
  case configuration(DaemonConfiguration)

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
      return .configuration(try value(check.configuration(nameOrPath)))
    }
    return .policy(try value(check.policy(nameOrPath)))
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
    switch self {
    case .policy(let loaded):
      guard worker == nil else { throw Self.noWorkers }
      return loaded.policy
    case .configuration(let configuration):
      guard let worker else { return configuration.policy }
      guard let match = configuration.workers.first(where: { $0.name == worker }) else {
        throw Self.unknown(worker, in: configuration)
      }
      return match.policy
    }
  }

  func values(of worker: String?) throws -> [EffectivePolicy.Value] {
    switch self {
    case .policy(let loaded):
      guard worker == nil else { throw Self.noWorkers }
      return EffectivePolicy(loaded.policy, origins: loaded.origins).values
    case .configuration(let configuration):
      guard let values = configuration.effective(worker: worker) else {
        throw Self.unknown(worker ?? "", in: configuration)
      }
      return values
    }
  }

  private static let noWorkers = CommandFailure(
    .usage, "a policy has no workers: name a configuration, or leave --worker out")

  private static func unknown(
    _ worker: String, in configuration: DaemonConfiguration
  ) -> CommandFailure {
    let hint = hint(for: worker, among: configuration.workers.map(\.name))
    return CommandFailure(
      .unknownWorker, "the configuration has no worker `\(escaped(worker))`\(hint)")
  }
}
