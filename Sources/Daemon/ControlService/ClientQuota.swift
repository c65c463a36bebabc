import Policy

/// Decides which clients of the control socket may stay: how many there are of each user, which one
/// is closed for a new one, and which have taken too long to send a request.
struct ClientQuota {
  /// The maximum number of clients. A client that hasn't sent a whole request yet is closed for a
  /// new one, so that half-open connections shut no other client out, however many there are.
  var maxClients = 256
  /// The maximum number of clients of one user, so that root and the daemon's own user can't shut
  /// each other out.
  var maxOfUser = 240
  /// How long a client may take from its connection, or from the first byte of a request, to the
  /// request's last byte.
  var timeout = Duration.seconds(30)

  private struct Client {
    var user: UInt32
    /// When the client connected or began its request; nil if it has begun no request after its
    /// first one.
    var since: Instant?
    /// Whether the client has sent a whole request.
    var hasSentRequest = false
  }

  private var clients: [ClientID: Client] = [:]

  enum Admission: Equatable {
    case admitted
    /// The client is admitted, and this one must be closed for it.
    case insteadOf(ClientID)
    /// The client isn't admitted, because all others have sent requests.
    case refused
  }

  var isFull: Bool {
    clients.count >= maxClients && !clients.values.contains { !$0.hasSentRequest }
  }

  /// - Parameter id: later clients have higher numbers.
  mutating func admit(_ id: ClientID, user: UInt32, at now: Instant) -> Admission {
    var admission = Admission.admitted
    let connections = clients.values.count { $0.user == user }
    if clients.count >= maxClients || connections >= maxOfUser {
      let candidates = clients.filter { !$0.value.hasSentRequest }
      // A client of the same user is closed first. Another user's is closed only if all together
      // are too many.
      let ofUser = candidates.filter { $0.value.user == user }
      let choice = ofUser.isEmpty && clients.count >= maxClients ? candidates : ofUser
      guard let oldest = choice.keys.min(by: { $0.number < $1.number }) else { return .refused }
      remove(oldest)
      admission = .insteadOf(oldest)
    }
    clients[id] = Client(user: user, since: now)
    return admission
  }

  /// Records that bytes of a client were read.
  ///
  /// - Parameters:
  ///   - isPartial: whether a request has begun and isn't complete.
  ///   - completed: whether a whole request was read.
  mutating func heard(_ id: ClientID, isPartial: Bool, completed: Bool, at now: Instant) {
    guard var client = clients[id] else { return }
    if completed {
      client.hasSentRequest = true
      client.since = isPartial ? now : nil
    } else if isPartial, client.since == nil {
      client.since = now
    }
    clients[id] = client
  }

  mutating func remove(_ id: ClientID) { clients[id] = nil }

  /// The clients that have been at one request, or at none, for too long.
  func overdue(at now: Instant) -> [ClientID] {
    clients.filter { $0.value.since.map { now - $0 >= timeout } ?? false }.map(\.key)
  }
}
