import CLinux
import Glibc
import Linux

/// The daemon's end of a worker's `MEMORY_PRESSURE_WATCH` (https://systemd.io/MEMORY_PRESSURE), as a
/// stream socket: the worker connects, may write a threshold first, which means nothing here, and
/// polls for input. Each byte that we send says: give memory back now.
///
/// A set of its own (an epoll descriptor is itself pollable) holds the listener and the
/// connections, so that an event loop watches one descriptor. Belongs to its thread.
public final class PressureWatch {
  public let path: String
  /// Readable when `service` has something to do.
  public let descriptor: Descriptor
  private let listener: Descriptor
  private var connections: [Int32: Connection] = [:]
  /// False while connections can't be accepted; the listener then isn't watched, for it would be
  /// readable all the time.
  private var accepts = false

  /// A worker may connect from each of its processes, but must not use up the daemon's descriptors.
  static let maxConnections = 32
  /// Bytes that a connection may send in its life. A threshold is under 100.
  static let maxInput = 4096

  private struct Connection {
    let descriptor: Descriptor
    var received = 0
  }

  /// The path must fit a socket address: clients only take absolute paths here.
  public init(path: String) throws(SystemCallError) {
    self.path = path
    listener = try UnixSocket.bound(to: path, .stream)
    UnixSocket.refuseDescriptors(listener)
    try listener.listen(backlog: 16, path: path)
    descriptor = Descriptor(owning: try shim("epoll_create1") { clinux_epoll_create() })
    try startAccepting()
  }

  /// The number of clients that a `notifyAll` reaches.
  public var listenerCount: Int { connections.count }

  /// Accepts new connections, drops closed ones, and throws away what was written.
  public func service() throws(SystemCallError) {
    var events = [clinux_event](repeating: clinux_event(), count: Self.maxConnections + 1)
    let capacity = Int32(events.count)
    let count = try shim("epoll_wait", on: path) {
      clinux_epoll_wait(descriptor.raw, &events, capacity, 0)
    }
    for event in events.prefix(Int(count)) {
      let raw = Int32(truncatingIfNeeded: event.data)
      if raw == listener.raw { try accept() } else { discardInput(of: raw) }
    }
  }

  /// Sends a request to free memory to every listener. Returns how many there are.
  @discardableResult
  public func notifyAll() throws(SystemCallError) -> Int {
    if !accepts { try startAccepting() }
    // A client that connected a moment ago has to be notified too.
    try service()
    for raw in Array(connections.keys) {
      var byte: UInt8 = 1
      let result = kernelResult { send(raw, &byte, 1, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) }
      // Full: it hasn't read what was sent before, and will wake up for that.
      if result < 0, result != -Int(EAGAIN), result != -Int(EINTR) { drop(raw) }
    }
    return connections.count
  }

  /// Removes the name; see `NotifySocket.remove`.
  public func remove() { discardFile(path) }

  private func startAccepting() throws(SystemCallError) {
    try shim("epoll_ctl", on: path) {
      clinux_epoll_add(
        descriptor.raw, listener.raw, UInt32(CLINUX_EPOLLIN), UInt64(listener.raw))
    }
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
          // Out of descriptors, most likely. Waiting clients stay in the queue until `notifyAll`.
          clinux_epoll_remove(descriptor.raw, listener.raw)
          accepts = false
          throw error
        }
      }
      guard connections.count < Self.maxConnections else { continue }
      let raw = connection.raw
      try shim("epoll_ctl", on: path) {
        clinux_epoll_add(
          descriptor.raw, raw, UInt32(CLINUX_EPOLLIN), UInt64(raw))
      }
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

  /// Taken out of the set by name: closing does that only when no child between fork and exec has a
  /// copy, and the number may soon be another's.
  private func drop(_ raw: Int32) {
    clinux_epoll_remove(descriptor.raw, raw)
    connections[raw] = nil
  }
}
