import Hibernation
import Policy
import PolicyFile

/// Loads the encryption library at the start of the daemon if a policy wants encrypted images. A
/// missing library is then logged at the start, and not only at the first hibernation. Belongs to
/// the loop's thread.
struct EncryptionTrial {
  let log: (DaemonLog.Priority, String) -> Void
  /// Loads the library on another thread, and then calls back once on the loop, with the reason if
  /// it can't be loaded.
  let attempt: (_ then: @escaping (JobOutcome<String?>) -> Void) -> Void
}

extension EncryptionTrial {
  init(_ services: Services) {
    self.init(log: services.log.callAsFunction) { [jobs = services.jobs] then in
      jobs.run(about: "libcrypto", within: .seconds(30)) {
        failureText { _ = try CryptoLibrary.tryLoading() }
      } then: {
        then($0)
      }
    }
  }

  func tryEncryption(for configuration: DaemonConfiguration) {
    let policies = [configuration.policy] + configuration.workers.map(\.policy)
    guard policies.contains(where: { $0.hibernate.enabled && $0.hibernate.encrypt }) else { return }
    attempt { [log] outcome in
      guard case .done(let obstacle?) = outcome else { return }
      log(
        .warning,
        "images can't be encrypted (hibernate.encrypt): \(obstacle); "
          + "workers with that policy stay suspended"
      )
    }
  }
}
