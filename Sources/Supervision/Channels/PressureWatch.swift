import CLinux
import Glibc
import Linux

/// The daemon's end of a worker's `MEMORY_PRESSURE_WATCH` (https://systemd.io/MEMORY_PRESSURE), as
/// a stream socket. The worker connects, may first write a threshold, which is ignored here, and
/// polls for input. Each byte that the daemon sends asks the worker to free memory now.
///
/// An epoll set of its own holds the listener and the connections, so that the event loop watches
/// one descriptor (an epoll descriptor is itself pollable). It belongs to the event loop's thread.
public final class PressureWatch {
  public let path: String
  /// Readable when `service` has something to do.
  public var descriptor: Descriptor { epoll.descriptor }
  private let epoll: Epoll
  private let listener: Descriptor
  private var connections: [Int32: Connection] = [:]
  /// False while connections can't be accepted. The listener isn't watched then: it would be
  /// readable all the time.
  private var accepts = false

  /// A worker may connect from each of its processes, but must not use up the daemon's descriptors.
  static let maxConnections = 32
  /// The number of bytes that one connection may send in total. A threshold has fewer than 100.
  static let maxInput = 4096

  private struct Connection {
    let descriptor: Descriptor
    var received = 0
  }

  /// The path must fit a socket address: clients of this protocol only accept absolute paths.
  public init(path: String) throws(SystemCallError) {
    self.path = path
    listener = try UnixSocket.bound(to: path, .stream)
    UnixSocket.refuseDescriptors(listener)
    try listener.listen(backlog: 16, path: path)
    epoll = try Epoll()
    try startAccepting()
  }

  /// The number of clients that `notifyAll` reaches.
  public var listenerCount: Int { connections.count }

  /// Accepts new connections, removes closed ones, and discards what clients have written.
  public func service() throws(SystemCallError) {
    for event in try epoll.wait(milliseconds: 0, on: path) {
      let raw = Int32(truncatingIfNeeded: event.token)
      if raw == listener.raw { try accept() } else { discardInput(of: raw) }
    }
  }

  /// Sends a request to free memory to every client. Returns the number of clients.
  @discardableResult
  public func notifyAll() throws(SystemCallError) -> Int {
    if !accepts { try startAccepting() }
    // A client that has just connected must be notified, too.
    try service()
    for raw in Array(connections.keys) {
      var byte: UInt8 = 1
      let result = kernelResult { send(raw, &byte, 1, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) }
      // If its buffer is full, the client hasn't read earlier bytes. They will wake it.
      if result < 0, result != -Int(EAGAIN), result != -Int(EINTR) { drop(raw) }
    }
    return connections.count
  }

  private func startAccepting() throws(SystemCallError) {
    try epoll.add(listener.raw, .readable, token: UInt64(listener.raw), on: path)
    accepts = true
  }

  private func accept() throws(SystemCallError) {
    for _ in 0..<Self.maxConnections {
      let connection: Descriptor
      do throws(SystemCallError) {
        connection = Descriptor(
          foreign: try shim("accept", on: path) { clinux_accept(listener.raw) })
      } catch {
        switch error.code {
        case EAGAIN: return
        case ECONNABORTED: continue
        default:
          // Most likely, no descriptor is free. Clients wait in the queue until `notifyAll`.
          epoll.remove(listener.raw)
          accepts = false
          throw error
        }
      }
      guard connections.count < Self.maxConnections else { continue }
      let raw = connection.raw
      try epoll.add(raw, .readable, token: UInt64(raw), on: path)
      connections[raw] = Connection(descriptor: connection)
    }
  }

  private func discardInput(of raw: Int32) {
    guard let connection = connections[raw] else { return }
    let reception: Reception?
    var bytes: [UInt8] = []
    do throws(SystemCallError) {
      reception = try Reception.receive(from: connection.descriptor, Self.maxInput, &bytes)
    } catch { return drop(raw) }
    guard let reception else { return }
    let received = reception.count
    guard received > 0, reception.passed.isEmpty,
      connection.received + received <= Self.maxInput
    else { return drop(raw) }
    connections[raw]?.received += received
  }

  /// Closes a connection. It is removed from the epoll set explicitly: `close` doesn't remove it
  /// while a child between fork and exec has a copy, and the descriptor's number may be used again
  /// soon.
  private func drop(_ raw: Int32) {
    epoll.remove(raw)
    connections[raw] = nil
  }
}
