import Control
import Daemon
import Glibc
import Lifecycle
import Linux
import Policy

/// Reports the wrapped worker to a daemon, if one runs. `ps` and `status` then show it with the
/// other workers, and verbs reach it through the wrapper's own socket. The wrapper still decides by
/// its own policy, and works without a daemon.
///
/// No method blocks: if the daemon doesn't read, the connection is closed. It belongs to the loop's
/// thread.
final class WrapperRegistration {
  /// The facts about the wrapper that the daemon gets.
  struct Wrapper {
    var worker: WorkerID
    /// The path of the wrapper's own socket.
    var socket: String
    var mayBeTerminated: Bool
    var canShed: Bool
  }

  private let path: String
  private let wrapper: Wrapper
  private let timers: any Timers
  private let watches: any DescriptorWatches
  private let run: ProgramRun
  private var connection: (socket: Descriptor, token: LoopToken)?
  private var count: UInt64 = 0
  private var checks = 0
  private var reported = ByteCount.zero
  private var reportedSwapped = ByteCount.zero

  /// The time between two attempts to find a daemon.
  static let interval = Duration.seconds(5)
  /// The number of checks after which a running worker's footprint is reported although its state
  /// hasn't changed. Each measurement costs the kernel time.
  static let checksPerReport = 6
  /// The number of checks at the beginning that are made once a second, because a program grows
  /// after its start.
  static let frequentChecks = 20

  /// - Parameter path: the daemon's socket.
  init(
    of wrapper: Wrapper, to path: String, timers: any Timers, watches: any DescriptorWatches,
    run: ProgramRun
  ) {
    self.wrapper = wrapper
    self.path = path
    self.timers = timers
    self.watches = watches
    self.run = run
  }

  func begin() {
    checks += 1
    let isDue =
      run.state?.runs == true && (checks % Self.checksPerReport == 0 || footprintHasChanged)
    if connection == nil || isDue { report() }
    let next = checks < Self.frequentChecks ? Duration.seconds(1) : Self.interval
    timers.after(next) { [weak self] in self?.begin() }
  }

  /// True if the footprint, or its part in swap, differs from the reported one by at least an
  /// eighth of the footprint, and by 256 KiB.
  private var footprintHasChanged: Bool {
    let grown = (run.footprint - reported).bytes.magnitude
    let moved = max(grown, (run.swapped - reportedSwapped).bytes.magnitude)
    return moved >= 256 * 1024 && moved >= reported.bytes.magnitude / 8
  }

  /// Reports the present state.
  func report() {
    connect { [weak self] in
      self?.run.report { self?.send($0) }
    }
  }

  private func send(_ report: WorkerReport) {
    guard let socket = connection?.socket, let line = line(report) else { return }
    reported = ByteCount(report.footprint)
    reportedSwapped = ByteCount(report.trim?.swapped ?? 0)
    let sent = socket.send(line, waits: false)
    // A half-sent line can't be repaired, so the connection is closed.
    if sent != line.count { disconnect() }
  }

  private func line(_ report: WorkerReport) -> [UInt8]? {
    count += 1
    var request = ControlRequest(id: count, verb: .register, worker: wrapper.worker.name)
    request.wrapper = WrapperReport(
      pid: getpid(), socket: wrapper.socket, worker: report,
      mayBeTerminated: wrapper.mayBeTerminated, canShed: wrapper.canShed)
    // A line that is too long isn't sent: the daemon would close the connection for it.
    return try? WireCodec.line(for: request)
  }

  private func connect(then: @escaping () -> Void) {
    if connection != nil { return then() }
    run.connect(to: path) { [weak self] socket in
      // In a directory that any user can make, any process may listen, and it gets no reports.
      // Without a watch, the end of the connection would not be noticed. The next attempt tries
      // again.
      guard let self, connection == nil, let socket, socket.hasTrustedPeer,
        let token = try? watches.whenReadable(socket, do: { [unowned self] in didReceive() })
      else { return }
      connection = (socket, token)
      then()
    }
  }

  /// Ignores answers, and records the end of the connection.
  private func didReceive() {
    guard let socket = connection?.socket else { return }
    // An error is an end, too.
    let bytes = (try? socket.read(upTo: 4096)) ?? []
    if bytes.isEmpty { disconnect() }
  }

  private func disconnect() {
    guard let (socket, token) = connection else { return }
    watches.unwatch(socket, token)
    connection = nil
  }
}
