import Synchronization

/// The browsers that have shown the token. Each has a random secret of its own as its cookie.
///
/// A browser sends its cookies to every port of a host, also to another user's server. Therefore
/// the cookie is never the token. It ends by itself and with this process, and isn't accepted as a
/// bearer token.
final class Sessions: Sendable {
  private let ends = Mutex<[AccessToken: ContinuousClock.Instant]>([:])

  static let lifetime = Duration.seconds(24 * 3600)
  static let maxCount = 64

  /// Begins a session. If there are too many, the one that ends first is dropped.
  func begin(at now: ContinuousClock.Instant = .now) -> AccessToken {
    let session = AccessToken.random()
    ends.withLock { ends in
      ends = ends.filter { $0.value > now }
      if ends.count >= Self.maxCount, let first = ends.min(by: { $0.value < $1.value }) {
        ends[first.key] = nil
      }
      ends[session] = now + Self.lifetime
    }
    return session
  }

  /// Returns the end of the session with this cookie; nil if there is none.
  func end(of cookie: String, at now: ContinuousClock.Instant = .now) -> ContinuousClock.Instant? {
    ends.withLock { ends in
      ends.first { $0.key.matches(cookie) && $0.value > now }?.value
    }
  }
}
