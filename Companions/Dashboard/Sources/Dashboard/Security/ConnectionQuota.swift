/// Limits the number of open connections by owner. Another user of this machine, or another
/// machine, can't use up the connections of this user.
struct ConnectionQuota: Sendable {
  enum Owner: Hashable, Sendable {
    /// This user, or root.
    case thisUser
    /// Another user of this machine, or an unknown one. Each gets a refusal.
    case stranger
    /// Another machine, with --allow-remote.
    case remote(IPAddress)
  }

  static let ofThisUser = 128
  static let ofStrangers = 16
  static let ofRemotes = 64
  static let ofOneRemote = 16
  /// The maximum number of all connections, including those whose user is still unknown: the user
  /// is found out without waiting for the other end. At this number no further ones are accepted
  /// until one is closed.
  static let all = 256

  private var counts: [Owner: Int] = [:]
  private var remotes = 0

  /// Counts a connection. The result is false if it must be closed.
  mutating func add(_ owner: Owner) -> Bool {
    let count = counts[owner, default: 0]
    switch owner {
    case .thisUser: guard count < Self.ofThisUser else { return false }
    case .stranger: guard count < Self.ofStrangers else { return false }
    case .remote:
      guard count < Self.ofOneRemote, remotes < Self.ofRemotes else { return false }
      remotes += 1
    }
    counts[owner] = count + 1
    return true
  }

  /// Records that a counted connection was closed.
  mutating func free(_ owner: Owner) {
    guard let count = counts[owner] else { return }
    counts[owner] = count > 1 ? count - 1 : nil
    if case .remote = owner { remotes -= 1 }
  }
}
