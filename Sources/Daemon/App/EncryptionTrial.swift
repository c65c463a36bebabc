import Hibernation
import PolicyFile

extension Daemon {
  /// Where a policy wants encrypted images: loads the library that encrypts them, so that the log says at the
  /// start, and not only at the first hibernation, that it isn't there.
  func tryEncryption() {
    let configuration = settings.configuration
    let policies = [configuration.policy] + configuration.workers.map(\.policy)
    guard policies.contains(where: { $0.hibernate.enabled && $0.hibernate.encrypt }) else { return }
    jobs.run(about: "libcrypto", within: .seconds(30)) { () -> String? in
      do throws(CryptoLibraryError) {
        _ = try CryptoLibrary.tryLoading()
        return nil
      } catch { return error.description }
    } then: { [log] outcome in
      guard case .done(let obstacle?) = outcome else { return }
      log(
        .warning,
        "images can't be encrypted (hibernate.encrypt), so workers with that policy stay suspended: \(obstacle)"
      )
    }
  }
}
