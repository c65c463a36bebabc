import CLinux
import Glibc
import Linux
import WorkerProtocol

/// The daemon's end of a worker's `DORMOUSE_WORKER_SOCKET` (docs/worker-protocol.md): a listening stream
/// socket, and the worker's connections. What the lines mean is the caller's business; what a worker
/// may cost us is settled here.
///
/// Like `PressureWatch` it has a set of its own, so that an event loop watches one descriptor. Slow reading
/// needs a clock: a timer is in the set while a connection is slowed down. Belongs to its thread.
public final class WorkerSocket {
  public let path: String
  /// Readable when `service` has something to do.
  public let descriptor: Descriptor
  private let listener: Descriptor
  private var connections: [ConnectionID: WorkerConnection] = [:]
  /// Taken out of the set until the timer fires.
  private var slowed: Set<ConnectionID> = []
  private var shutOut: [ConnectionID] = []
  private var timer: DeadlineTimer?
  private var isAccepting = false
  private var lastID: ConnectionID = 0
  private let bytes = ByteAllowance()

  /// Never used twice by one socket.
  public typealias ConnectionID = UInt64

  public enum News {
    case connected(ConnectionID)
    /// `passed`: the descriptor that came with a `purgeable`.
    case said(ConnectionID, WorkerMessage, passed: Descriptor?)
    /// `why`: the daemon has closed it; a clause.
    case left(ConnectionID, why: String?)
    /// A connection was refused; a clause.
    case refused(String)
  }

  /// Of one worker, all its processes together.
  public static let maxConnections = 8
  /// Nanoseconds. The pause is long enough that the daemon isn't woken for each line of a worker that sends too
  /// much.
  private static let pause: Int64 = 100_000_000
  private static let listenerMark = UInt64.max
  private static let timerMark = UInt64.max - 1

  /// At a path that may be known to a worker already, from an earlier daemon. It must fit a socket
  /// address.
  public init(path: String) throws(SystemCallError) {
    self.path = path
    listener = try UnixSocket.bound(to: path, .stream)
    try listener.listen(backlog: 16, path: path)
    descriptor = Descriptor(owning: try shim("epoll_create1") { clinux_epoll_create() })
    try startAccepting()
  }

  /// In the order in which they came.
  public var connectionIDs: [ConnectionID] { connections.keys.sorted() }
  public var isConnected: Bool { !connections.isEmpty }

  /// A caller that holds it keeps the connection open.
  public func descriptor(of id: ConnectionID) -> Descriptor? { connections[id]?.descriptor }

  /// Removes the name; see `NotifySocket.remove`.
  public func remove() { discardFile(path) }

  /// Accepts connections, reads what was sent, writes what waits. `isMember` says whether a pid is one of the
  /// worker's.
  public func service(isMember: (Int32) -> Bool) throws(SystemCallError) -> [News] {
    var events = [clinux_event](repeating: clinux_event(), count: Self.maxConnections + 2)
    let capacity = Int32(events.count)
    let count = try shim("epoll_wait", on: path) {
      clinux_epoll_wait(descriptor.raw, &events, capacity, 0)
    }
    var news: [News] = []
    for event in events.prefix(Int(count)) {
      switch event.data {
      case Self.listenerMark: accept(isMember, &news)
      case Self.timerMark: goOn(&news)
      default: serve(event.data, &news)
      }
    }
    return news
  }

  // MARK: to the worker

  /// False: the connection has ended, or has just been closed, since the worker doesn't read; see
  /// `takeShutOut`.
  public func send(_ message: DaemonMessage, to id: ConnectionID) -> Bool {
    guard let connection = connections[id] else { return false }
    guard connection.send(message) else { return shutOut(id) }
    watchIfWaiting(id, connection)
    return true
  }

  /// A line of the worker's that could be read and still means nothing. False as for `send`.
  public func refuse(_ text: String, to id: ConnectionID) -> Bool {
    guard let connection = connections[id] else { return false }
    guard connection.refuse(text) == nil else { return shutOut(id) }
    watchIfWaiting(id, connection)
    return true
  }

  /// Connections that `send` and `refuse` have closed since the last time.
  public func takeShutOut() -> [ConnectionID] {
    defer { shutOut = [] }
    return shutOut
  }

  private func shutOut(_ id: ConnectionID) -> Bool {
    drop(id)
    shutOut.append(id)
    return false
  }

  /// The kernel didn't take all of it. The rest is written when the kernel takes more; for a slowed connection,
  /// when it is its turn.
  private func watchIfWaiting(_ id: ConnectionID, _ connection: WorkerConnection) {
    if connection.wantsToWrite, !slowed.contains(id) { watch(id, connection) }
  }

  // MARK: connections

  private func startAccepting() throws(SystemCallError) {
    guard !isAccepting else { return }
    try shim("epoll_ctl", on: path) {
      clinux_epoll_add(
        descriptor.raw, listener.raw, UInt32(CLINUX_EPOLLIN), Self.listenerMark)
    }
    isAccepting = true
  }

  private func accept(_ isMember: (Int32) -> Bool, _ news: inout [News]) {
    for _ in 0..<16 {
      let raw = clinux_accept(listener.raw)
      if raw == -ECONNABORTED || raw == -EINTR { continue }
      if raw == -EAGAIN { return }
      guard raw >= 0 else {
        // Out of descriptors, most likely. The listener would be readable all the time.
        clinux_epoll_remove(descriptor.raw, listener.raw)
        isAccepting = false
        news.append(.refused("a connection must wait: \(String(cString: strerror(-raw)))"))
        return setTimer()
      }
      admit(Descriptor(foreign: raw), isMember: isMember, news: &news)
    }
  }

  private func admit(
    _ descriptor: Descriptor, isMember: (Int32) -> Bool, news: inout [News]
  ) {
    var pid: pid_t = 0
    var user: uid_t = 0
    var group: gid_t = 0
    // 0: a process of a pid namespace that the daemon can't see.
    guard clinux_peer_credentials(descriptor.raw, &pid, &user, &group) == 0, pid > 0, isMember(pid)
    else { return news.append(.refused("pid \(pid) is not one of its processes")) }
    guard connections.count < Self.maxConnections else {
      return news.append(.refused("it has \(Self.maxConnections) connections already"))
    }
    lastID += 1
    let added = clinux_epoll_add(
      self.descriptor.raw, descriptor.raw, UInt32(CLINUX_EPOLLIN), lastID)
    guard added >= 0 else { return }
    connections[lastID] = WorkerConnection(descriptor, pid: pid, bytes: bytes)
    news.append(.connected(lastID))
  }

  private func serve(_ id: ConnectionID, _ news: inout [News]) {
    guard let connection = connections[id] else { return }
    guard connection.flush() else { return leave(id, why: WorkerConnection.unread, news: &news) }
    switch connection.read(at: Clocks.boottime, { news.append(.said(id, $0, passed: $1)) }) {
    case .read: watch(id, connection)
    case .ended: leave(id, why: nil, news: &news)
    case .shutOut(let why): leave(id, why: why, news: &news)
    case .slowed:
      // Out of the set, and not only deaf: a hang-up would be reported over and over.
      if slowed.insert(id).inserted {
        clinux_epoll_remove(descriptor.raw, connection.descriptor.raw)
      }
      setTimer()
    }
  }

  /// A connection was slowed down, or couldn't be accepted.
  private func goOn(_ news: inout [News]) {
    timer?.clear()
    if !isAccepting {
      do throws(SystemCallError) { try startAccepting() } catch { setTimer() }
    }
    for id in slowed.sorted() { serve(id, &news) }
    guard slowed.isEmpty, isAccepting, let timer else { return }
    clinux_epoll_remove(descriptor.raw, timer.descriptor.raw)
    self.timer = nil
  }

  private func setTimer() {
    // Without a descriptor there is no timer; the next call tries again.
    if timer == nil, let new = try? DeadlineTimer() {
      timer = new
      _ = clinux_epoll_add(
        descriptor.raw, new.descriptor.raw, UInt32(CLINUX_EPOLLIN), Self.timerMark)
    }
    timer?.set(Clocks.boottime + Self.pause)
  }

  /// In the set again, and for what it waits for.
  private func watch(_ id: ConnectionID, _ connection: WorkerConnection) {
    let interest = UInt32(CLINUX_EPOLLIN) | (connection.wantsToWrite ? UInt32(CLINUX_EPOLLOUT) : 0)
    let raw = connection.descriptor.raw
    if slowed.remove(id) != nil {
      _ = clinux_epoll_add(descriptor.raw, raw, interest, id)
    } else {
      _ = clinux_epoll_modify(descriptor.raw, raw, interest, id)
    }
  }

  private func leave(_ id: ConnectionID, why: String?, news: inout [News]) {
    drop(id)
    news.append(.left(id, why: why))
  }

  /// Taken out of the set by name; see `PressureWatch.drop`.
  private func drop(_ id: ConnectionID) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    if slowed.remove(id) == nil {
      clinux_epoll_remove(descriptor.raw, connection.descriptor.raw)
    }
  }
}
