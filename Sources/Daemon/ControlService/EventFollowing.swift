import Control
import Journal

/// Sends every event to the clients of `dormouse events -f`. A client that doesn't read them in
/// time misses some, and is sent their number before the next one. It belongs to the event loop's
/// thread.
final class EventFollowing {
  /// The bytes that may wait for a client. Events beyond that are counted and not sent.
  static let maxUnread = 64 << 10

  private struct Follower {
    /// The latest request by which the client follows.
    var request: UInt64 = 0
    /// The number of events that weren't sent, because the client hadn't read those before.
    var lost = 0
    /// The functions that stop the client's following.
    var ends: [() -> Void] = []
  }

  private let chronicle: Chronicle
  private let unreadBytes: (ClientID) -> Int?
  private let deliver: (ControlResponse, ClientID) -> Void
  private var followers: [ClientID: Follower] = [:]

  /// - Parameters:
  ///   - unreadBytes: the bytes that the client hasn't read; nil if it has disconnected.
  ///   - send: sends a response to a client.
  init(
    _ chronicle: Chronicle, unreadBytes: @escaping (ClientID) -> Int?,
    send: @escaping (ControlResponse, ClientID) -> Void
  ) {
    self.chronicle = chronicle
    self.unreadBytes = unreadBytes
    deliver = send
  }

  /// Sends events to a client from now on.
  ///
  /// - Parameters:
  ///   - request: the number that all events carry.
  ///   - worker: the worker whose events are sent; nil for all workers.
  func follow(_ client: ClientID, _ request: UInt64, worker: String?) {
    followers[client, default: Follower()].request = request
    let end = chronicle.follow(worker: worker) { [weak self] event in
      self?.pass(event, to: client, request) ?? false
    }
    followers[client]?.ends.append(end)
  }

  /// Passes an event to a client.
  ///
  /// - Returns: false if the client has disconnected.
  private func pass(_ event: EventRecord, to client: ClientID, _ request: UInt64) -> Bool {
    guard followers[client] != nil, let unread = unreadBytes(client) else {
      return false
    }
    if unread > Self.maxUnread {
      followers[client]?.lost += 1
    } else {
      send(event, to: client, request)
    }
    return true
  }

  private func send(_ event: EventRecord, to client: ClientID, _ request: UInt64) {
    var response = ControlResponse(id: request, result: .event, text: event.text)
    response.event = event
    deliver(response, client)
  }

  /// Sends the client the number of the events that it missed, if there are any. Its socket has
  /// accepted all that was sent.
  func didReadAll(_ client: ClientID) {
    guard let follower = followers[client], follower.lost > 0 else { return }
    followers[client]?.lost = 0
    let what = follower.lost == 1 ? "1 event was" : "\(follower.lost) events were"
    var event = EventRecord(
      time: JournalWriter.wall().text, kind: "lost",
      text: "\(what) lost: the reader was too slow; the journal has them")
    event.lost = follower.lost
    send(event, to: client, follower.request)
  }

  func forget(_ client: ClientID) {
    for end in followers.removeValue(forKey: client)?.ends ?? [] { end() }
  }
}
