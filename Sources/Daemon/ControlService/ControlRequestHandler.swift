import Control

/// One connection to the control socket. Each connection in a daemon's life has its own number.
struct ClientID: Hashable, Sendable { let number: UInt64 }

/// The handler of the control socket's requests. All of it is called on the loop's thread.
protocol ControlRequestHandler: AnyObject {
  /// `respond` is called once, now or later. An answer to a client that has left is dropped.
  func handle(
    _ request: ControlRequest, from client: ClientID,
    then respond: @escaping (ControlResponse) -> Void)

  /// A client requests the daemon's end, by `shutdown` or `leave`. `ControlServer.announceEnd` answers it.
  func end(by verb: ControlRequest.Verb)

  /// The client's socket has taken everything that was sent.
  func hasReadEverything(_ client: ClientID)

  /// The connection has ended.
  func hasLeft(_ client: ClientID)
}
