import Control
import Journal

/// Sends every event to the clients of `dormouse events -f`. A client that doesn't read them in
/// time misses some, and is sent their number before the next one. It belongs to the event loop's
/// thread.
final class EventFollowing {
  /// The bytes that may wait for a client. Events beyond that are counted and not sent.
  static let maxUnread = 64 << 10

  private struct Follower {
    /// The requests by which the client follows, with the worker that each names; nil for all
    /// workers.
    var requests: [(id: UInt64, worker: String?)] = []
    /// The number of events that weren't sent, because the client hadn't read those before.
    var lost = 0
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
    followers[client, default: Follower()].requests.append((request, worker))
    chronicle.observe(as: .clients) { [weak self] in self?.pass($1) }
  }

  /// Passes an event to the clients that follow it.
  private func pass(_ event: EventRecord) {
    // This loops over a copy, because a client may disconnect while an event is sent to it.
    for (client, follower) in followers {
      for request in follower.requests
      where request.worker == nil || request.worker == event.worker {
        guard followers[client] != nil, let unread = unreadBytes(client) else {
          forget(client)
          break
        }
        if unread > Self.maxUnread {
          followers[client]?.lost += 1
        } else {
          send(event, to: client, request.id)
        }
      }
    }
  }

  private func send(_ event: EventRecord, to client: ClientID, _ request: UInt64) {
    var response = ControlResponse(id: request, result: .event, text: event.text)
    response.event = event
    deliver(response, client)
  }

  /// Sends the client the number of the events that it missed, if there are any. Its socket has
  /// accepted all that was sent.
  func didReadAll(_ client: ClientID) {
    guard let follower = followers[client], follower.lost > 0, let last = follower.requests.last
    else { return }
    followers[client]?.lost = 0
    let what = follower.lost == 1 ? "1 event was" : "\(follower.lost) events were"
    var event = EventRecord(
      time: JournalWriter.wall().text, kind: "lost",
      text: "\(what) lost: the reader was too slow; the journal has them")
    event.lost = follower.lost
    send(event, to: client, last.id)
  }

  func isFollowing(_ client: ClientID) -> Bool { followers[client] != nil }

  func forget(_ client: ClientID) {
    followers[client] = nil
    if followers.isEmpty { chronicle.observe(as: .clients, nil) }
  }
}
