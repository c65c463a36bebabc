import Linux
import Policy
import Supervision

/// `NOTIFY_SOCKET` of one run of a worker on the loop. A worker that sends more than its limit is read again
/// after a while. Belongs to the loop's thread.
final class NotificationChannel {
  private let socket: NotifySocket
  private let timers: any Timers
  private let watches: any DescriptorWatches
  /// A process is one of the worker's.
  private let isSender: (Int32) -> Bool
  private let log: (DaemonLog.Priority, String) -> Void
  private var watch: EventLoop.Token?
  private var watchdog = WatchdogSigns()

  init(
    _ socket: NotifySocket, timers: any Timers, watches: any DescriptorWatches,
    isSender: @escaping (Int32) -> Bool, log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.socket = socket
    self.timers = timers
    self.watches = watches
    self.isSender = isSender
    self.log = log
  }

  deinit { end() }

  var path: String { socket.path }

  /// `isReadable` is called whenever there is something for `receive`.
  func listen(_ isReadable: @escaping () -> Void) throws(SystemCallError) {
    if watch == nil { watch = try watches.whenReadable(socket.descriptor, do: isReadable) }
  }

  func end() {
    if let watch { watches.unwatch(socket.descriptor, watch) }
    watch = nil
  }

  /// - Parameter limit: datagrams.
  func receive(limit: Int) -> (messages: [NotifyMessage], requests: [StoreRequest]) {
    // A socket that can't be read is ignored; it is made again with the next run.
    let messages =
      (try? socket.receive(limit: limit, at: timers.now.nanoseconds, isMember: isSender)) ?? []
    if !socket.mayReceive { pause() }
    return (messages, socket.takeStoreRequests())
  }

  /// The worker sends more than its limit. Its datagrams wait in the kernel, which makes senders wait when its
  /// queue is full.
  private func pause() {
    guard let watch else { return }
    // What can't be changed is read on at once, as before.
    try? watches.change(socket.descriptor, watch, to: [])
    timers.after(.milliseconds(100)) { [weak self] in self?.listenAgain() }
  }

  private func listenAgain() {
    guard let watch else { return }
    do throws(SystemCallError) {
      try watches.change(socket.descriptor, watch, to: .readable)
    } catch { log(.warning, "NOTIFY_SOCKET is no longer read: \(error)") }
  }

  /// `WATCHDOG=1`.
  func gaveSign() { watchdog.seen(at: timers.now) }

  /// When the worker last gave a sign of life, as far as `receive` has read it.
  func lastSign() -> Instant? {
    let now = timers.now
    // More than is read at a time: it lives.
    if !socket.mayReceive { watchdog.seen(at: now) }
    return watchdog.sign(at: now)
  }
}

extension WorkerProcess {
  /// Also true of its first process when that has ended, and isn't waited for yet: what it has sent last counts. A
  /// process that can't be read has been waited for, and isn't the worker's.
  func ownsSender(_ pid: Int32) -> Bool {
    (try? ProcessStat.read(pid))?.identity == identity || owns(pid)
  }
}
