import CLinux
import Glibc
import Linux
import WorkerProtocol

/// The daemon's end of a worker's `DORMOUSE_WORKER_SOCKET` (docs/worker-protocol.md): a listening
/// stream socket, and the worker's connections. The caller interprets the lines. This class limits
/// what a worker may cost the daemon.
///
/// It has an epoll set of its own, as `PressureWatch` has, so that the event loop watches one
/// descriptor. The set contains a timer while a connection is slowed down. It belongs to the event
/// loop's thread.
public final class WorkerSocket {
  public let path: String
  /// Readable when `service` has something to do.
  public var descriptor: Descriptor { epoll.descriptor }
  private let epoll: Epoll
  private let listener: Descriptor
  private var connections: [ConnectionID: WorkerConnection] = [:]
  /// Connections that are outside the epoll set until the timer fires.
  private var slowed: Set<ConnectionID> = []
  private var disconnected: [ConnectionID] = []
  private var timer: DeadlineTimer?
  private var isAccepting = false
  private var lastID: ConnectionID = 0
  /// The bytes that may still be read from the worker, over all its connections, including closed
  /// ones: 1 MiB per second, and at most 4 MiB saved up. That is four snapshots of the maximum
  /// length per second.
  private let bytes = Allowance(perSecond: 1 << 20, maxSaved: 4 << 20, interval: 10_000_000)

  /// Identifies a connection. A socket never uses a value twice.
  public typealias ConnectionID = UInt64

  public enum Update {
    case connected(ConnectionID)
    /// `passed` is the descriptor that came with a `purgeable` message.
    case received(ConnectionID, WorkerMessage, passed: Descriptor?)
    /// The connection has ended. `reason` is a clause if the daemon has closed it, and nil if the
    /// worker has.
    case closed(ConnectionID, reason: String?)
    /// A connection was refused. The text is a clause.
    case refused(String)
  }

  /// The maximum number of connections of one worker, for all its processes together.
  public static let maxConnections = 8
  /// In nanoseconds. The pause is long enough that the daemon isn't woken for each line of a worker
  /// that sends too much.
  private static let pause: Int64 = 100_000_000
  private static let listenerMark = UInt64.max
  private static let timerMark = UInt64.max - 1

  /// Creates a socket at a path that a worker may know already, from an earlier daemon. The path
  /// must fit a socket address.
  public init(path: String) throws(SystemCallError) {
    self.path = path
    listener = try UnixSocket.bound(to: path, .stream)
    try listener.listen(backlog: 16, path: path)
    epoll = try Epoll()
    try startAccepting()
  }

  /// The open connections, in the order in which they were accepted.
  public var connectionIDs: [ConnectionID] { connections.keys.sorted() }
  public var isConnected: Bool { !connections.isEmpty }

  /// The descriptor of a connection. A caller that retains it keeps the connection open.
  public func descriptor(of id: ConnectionID) -> Descriptor? { connections[id]?.descriptor }

  /// Accepts connections, reads what was sent, and writes what waits.
  ///
  /// - Parameter isMember: whether a pid is one of the worker's processes.
  public func service(isMember: (Int32) -> Bool) throws(SystemCallError) -> [Update] {
    var updates: [Update] = []
    for event in try epoll.wait(milliseconds: 0, on: path) {
      switch event.token {
      case Self.listenerMark: accept(isMember, &updates)
      case Self.timerMark: resumeSlowed(&updates)
      default: serve(event.token, &updates)
      }
    }
    return updates
  }

  // MARK: to the worker

  /// Returns false if the connection has ended, or was just closed because the worker doesn't read;
  /// see `drainClosed`.
  public func send(_ message: DaemonMessage, to id: ConnectionID) -> Bool {
    write(to: id) { $0.send(message) }
  }

  /// Reports to the worker that a well-formed line of it has no meaning. Returns false in the same
  /// cases as `send`.
  public func refuse(_ text: String, to id: ConnectionID) -> Bool {
    write(to: id) { $0.refuse(text) == nil }
  }

  /// Returns and removes the connections that `send` and `refuse` have closed since the last call.
  public func drainClosed() -> [ConnectionID] {
    defer { disconnected = [] }
    return disconnected
  }

  private func write(to id: ConnectionID, _ body: (WorkerConnection) -> Bool) -> Bool {
    guard let connection = connections[id] else { return false }
    guard body(connection) else {
      drop(id)
      disconnected.append(id)
      return false
    }
    // The kernel may not have accepted all bytes. A slowed connection writes when the timer fires.
    if connection.wantsToWrite, !slowed.contains(id) { watch(id, connection) }
    return true
  }

  // MARK: connections

  private func startAccepting() throws(SystemCallError) {
    guard !isAccepting else { return }
    try epoll.add(listener.raw, .readable, token: Self.listenerMark, on: path)
    isAccepting = true
  }

  private func accept(_ isMember: (Int32) -> Bool, _ updates: inout [Update]) {
    for _ in 0..<16 {
      let raw = clinux_accept(listener.raw)
      if raw == -ECONNABORTED || raw == -EINTR { continue }
      if raw == -EAGAIN { return }
      guard raw >= 0 else {
        // Most likely, no descriptor is free. The listener would be readable all the time.
        epoll.remove(listener.raw)
        isAccepting = false
        updates.append(.refused("a connection must wait: \(errorText(-raw))"))
        return setTimer()
      }
      admit(Descriptor(foreign: raw), isMember: isMember, updates: &updates)
    }
  }

  private func admit(
    _ descriptor: Descriptor, isMember: (Int32) -> Bool, updates: inout [Update]
  ) {
    // The pid is 0 if the process is in a pid namespace that the daemon can't see. An error counts
    // as that.
    let pid = (try? PeerCredentials(of: descriptor.raw))?.process ?? 0
    guard pid > 0, isMember(pid) else {
      return updates.append(.refused("pid \(pid) is not one of its processes"))
    }
    guard connections.count < Self.maxConnections else {
      return updates.append(.refused("it has \(Self.maxConnections) connections already"))
    }
    lastID += 1
    // A connection that can't be watched is closed.
    guard (try? epoll.add(descriptor.raw, .readable, token: lastID)) != nil else { return }
    connections[lastID] = WorkerConnection(descriptor, bytes: bytes)
    updates.append(.connected(lastID))
  }

  private func serve(_ id: ConnectionID, _ updates: inout [Update]) {
    guard let connection = connections[id] else { return }
    guard connection.flush() else {
      return end(id, reason: WorkerConnection.unread, updates: &updates)
    }
    switch connection.read(at: Clocks.boottime, { updates.append(.received(id, $0, passed: $1)) }) {
    case .read: watch(id, connection)
    case .ended: end(id, reason: nil, updates: &updates)
    case .mustClose(let reason): end(id, reason: reason, updates: &updates)
    case .slowed:
      // The connection is removed from the set and not only ignored: epoll would report a hang-up
      // over and over.
      if slowed.insert(id).inserted { epoll.remove(connection.descriptor.raw) }
      setTimer()
    }
  }

  /// Continues with the connections that were slowed down or couldn't be accepted.
  private func resumeSlowed(_ updates: inout [Update]) {
    timer?.clear()
    if !isAccepting {
      do throws(SystemCallError) { try startAccepting() } catch { setTimer() }
    }
    for id in slowed.sorted() { serve(id, &updates) }
    guard slowed.isEmpty, isAccepting, let timer else { return }
    epoll.remove(timer.descriptor.raw)
    self.timer = nil
  }

  private func setTimer() {
    // If no descriptor is free, there is no timer. The next call tries again.
    if timer == nil, let new = try? DeadlineTimer() {
      timer = new
      // If the timer can't be watched, the connections continue when another event comes.
      try? epoll.add(new.descriptor.raw, .readable, token: Self.timerMark)
    }
    timer?.set(Clocks.boottime + Self.pause)
  }

  /// Watches the connection for reading, and for writing if bytes wait. It is added to the set
  /// again if it was slowed.
  private func watch(_ id: ConnectionID, _ connection: WorkerConnection) {
    let interest: Epoll.Interest = connection.wantsToWrite ? [.readable, .writable] : .readable
    let raw = connection.descriptor.raw
    if slowed.remove(id) != nil {
      // Without memory for the watch, the connection waits until the worker closes it.
      try? epoll.add(raw, interest, token: id)
    } else {
      // The descriptor is in the set, so this can't fail.
      try? epoll.modify(raw, interest, token: id)
    }
  }

  private func end(_ id: ConnectionID, reason: String?, updates: inout [Update]) {
    drop(id)
    updates.append(.closed(id, reason: reason))
  }

  /// Closes a connection. It is removed from the set explicitly, for the reason given at
  /// `PressureWatch.drop`.
  private func drop(_ id: ConnectionID) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    if slowed.remove(id) == nil { epoll.remove(connection.descriptor.raw) }
  }
}
