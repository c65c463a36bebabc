import CLinux
import Control
import Glibc
import Lifecycle
import Linux
import Policy

/// Tells a daemon, where one runs, about the wrapped worker: `ps` and `status` show it with the
/// others, and their verbs reach it through the wrapper's own socket. The wrapper decides for
/// itself all the same, by its own policy, and works without any daemon.
///
/// Nothing here waits: a daemon that doesn't read is left.
final class Registration {
  private let path: String
  private unowned let daemon: Daemon
  private var connection: (socket: Descriptor, token: EventLoop.Token)?
  private var count: UInt64 = 0

  /// From one look for a daemon to the next.
  private static let interval = Duration.seconds(5)
  /// Between two changes of state a running worker's footprint is told so often. To measure it is
  /// work for the kernel.
  private static let looksPerReport = 6
  private var looks = 0
  /// In its first moments a program grows: it is looked at each second.
  private static let firstLooks = 20
  private var reported = ByteCount.zero

  init(path: String, daemon: Daemon) {
    self.path = path
    self.daemon = daemon
  }

  func begin() {
    looks += 1
    let isRunning = daemon.wrapped.flatMap { daemon.engine.state(of: $0.id) }?.runs == true
    let isDue = isRunning && (looks % Self.looksPerReport == 0 || hasMoved)
    if connection == nil || isDue { report() }
    let next = looks < Self.firstLooks ? Duration.seconds(1) : Self.interval
    daemon.loop.after(next) { [weak self] in self?.begin() }
  }

  /// Its footprint differs from what was reported, by an eighth at least.
  private var hasMoved: Bool {
    guard let id = daemon.wrapped?.id else { return false }
    let footprint = daemon.engine.footprint(of: id)
    let moved = (footprint - reported).bytes.magnitude
    return moved >= 256 * 1024 && moved >= reported.bytes.magnitude / 8
  }

  /// As of now.
  func report() {
    connect { [weak self] in
      self?.daemon.withWrappedReport { self?.send($0) }
    }
  }

  private func send(_ report: WorkerReport) {
    guard let wrapped = daemon.wrapped, let socket = connection?.socket,
      let line = line(wrapped, report)
    else { return }
    reported = ByteCount(report.footprint)
    let sent = Glibc.send(socket.raw, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    // Half a line can't be taken back.
    if sent != line.count { disconnect() }
  }

  private func line(_ wrapped: Wrapped, _ report: WorkerReport) -> [UInt8]? {
    count += 1
    var request = ControlRequest(id: count, verb: .register, worker: wrapped.id.name)
    request.wrapper = WrapperReport(
      pid: getpid(), socket: daemon.settings.socket, worker: report,
      mayBeTerminated: wrapped.settings.mayBeTerminated)
    return try? WireCodec.line(for: request)
  }

  /// Where there is a daemon. The way to its socket may lead through a file system that doesn't answer.
  private func connect(then: @escaping () -> Void) {
    if connection != nil { return then() }
    daemon.jobs.run(about: "daemon at \(path)", within: .seconds(5)) { [path] in
      // None runs, mostly: that is no failure.
      try? UnixSocket.connected(to: path, .stream)
    } then: { [weak self] outcome in
      guard let self, connection == nil, case .done(let found?) = outcome, isTrusted(found),
        let token = try? daemon.loop.watch(found, .readable, { [unowned self] _ in hear() })
      else { return }
      connection = (found, token)
      then()
    }
  }

  /// Anybody may listen in a directory that anybody can make.
  private func isTrusted(_ socket: Descriptor) -> Bool {
    var pid: pid_t = 0
    var user: uid_t = 0
    var group: gid_t = 0
    guard clinux_peer_credentials(socket.raw, &pid, &user, &group) == 0 else { return false }
    return user == geteuid() || user == 0
  }

  /// Answers are of no interest, but their end is.
  private func hear() {
    guard let socket = connection?.socket else { return }
    let heard = (try? socket.read(upTo: 4096)) ?? []
    if heard.isEmpty { disconnect() }
  }

  private func disconnect() {
    guard let (socket, token) = connection else { return }
    daemon.loop.unwatch(socket, token)
    connection = nil
  }
}

extension Daemon {
  func register() {
    guard let wrapped else { return }
    let registration = Registration(path: wrapped.settings.daemonSocket, daemon: self)
    wrapped.registration = registration
    registration.begin()
  }

  func withWrappedReport(then: @escaping (WorkerReport) -> Void) {
    guard let wrapped else { return }
    let request = ControlRequest(id: 0, verb: .status, worker: wrapped.id.name)
    senses.scanner.withRecentScan(of: workers.values) { [unowned self] scan in
      let response = statusReporter.report(request, scan)
      if let report = response.workers?.first { then(report) }
    }
  }
}
