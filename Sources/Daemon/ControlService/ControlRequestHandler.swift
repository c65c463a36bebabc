import Control

/// One connection to the control socket. No two connections of a daemon's life have the same number.
struct ClientID: Hashable, Sendable { let number: UInt64 }

/// What the control socket hands requests to. All of it is called on the loop's thread.
protocol ControlRequestHandler: AnyObject {
  /// `respond` is called once, now or later. An answer to a client that has left is dropped.
  func handle(
    _ request: ControlRequest, from client: ClientID,
    then respond: @escaping (ControlResponse) -> Void)

  /// A client asks for the daemon's end, by `shutdown` or `leave`. `ControlServer.announceEnd` answers it.
  func end(by verb: ControlRequest.Verb)

  /// The client's socket has taken everything that was sent.
  func hasReadEverything(_ client: ClientID)

  /// The connection has ended.
  func hasLeft(_ client: ClientID)
}
