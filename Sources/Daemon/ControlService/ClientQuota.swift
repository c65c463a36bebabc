import Policy

/// Which clients of the control socket may stay: how many there are of each user, which one gives way to
/// a new one, and which have taken too long to send a request.
struct ClientQuota {
  /// All together. A client that hasn't sent a whole request yet gives way to a new one, so that any
  /// number of half-open connections shuts no other client out.
  var maxClients = 256
  /// Root and the daemon's own user can't shut each other out.
  var maxOfUser = 240
  /// From the connection, or from the first byte of a request, to its last.
  var patience = Duration.seconds(30)

  private struct Client {
    var user: UInt32
    /// When it connected, or began its request; nil: nothing is begun, and it has sent one before.
    var since: Instant?
    /// It has sent a whole request.
    var isKnown = false
    var order: UInt64
  }

  private var clients: [Int32: Client] = [:]
  private var users: [UInt32: Int] = [:]
  private var count: UInt64 = 0

  enum Admission: Equatable {
    case admitted
    /// Instead of this one, which must be closed.
    case insteadOf(Int32)
    /// All others are at work.
    case refused
  }

  var isFull: Bool {
    clients.count >= maxClients && !clients.values.contains { !$0.isKnown }
  }

  mutating func admit(_ id: Int32, user: UInt32, at now: Instant) -> Admission {
    var admission = Admission.admitted
    if clients.count >= maxClients || users[user, default: 0] >= maxOfUser {
      let candidates = clients.filter { !$0.value.isKnown }
      // Its own user's first: another user's only where all together are too many.
      let own = candidates.filter { $0.value.user == user }
      let choice = own.isEmpty && clients.count >= maxClients ? candidates : own
      guard let oldest = choice.min(by: { $0.value.order < $1.value.order })?.key else {
        return .refused
      }
      remove(oldest)
      admission = .insteadOf(oldest)
    }
    count += 1
    clients[id] = Client(user: user, since: now, order: count)
    users[user, default: 0] += 1
    return admission
  }

  /// Something has come, and was read. `isPartial`: a request has begun and isn't complete;
  /// `completed`: a whole one was among it.
  mutating func heard(_ id: Int32, isPartial: Bool, completed: Bool, at now: Instant) {
    guard var client = clients[id] else { return }
    if completed {
      client.isKnown = true
      client.since = isPartial ? now : nil
    } else if isPartial, client.since == nil {
      client.since = now
    }
    clients[id] = client
  }

  mutating func remove(_ id: Int32) {
    guard let client = clients.removeValue(forKey: id) else { return }
    users[client.user, default: 1] -= 1
    if users[client.user] == 0 { users[client.user] = nil }
  }

  /// Those that have been at one request, or at none, for too long.
  func overdue(at now: Instant) -> [Int32] {
    clients.filter { $0.value.since.map { now - $0 >= patience } ?? false }.keys.sorted()
  }
}
