import Linux
import Policy
import Supervision

/// The `NOTIFY_SOCKET` of one run of a worker, watched by the event loop. If a worker sends more
/// than its limit, its messages are read again after a pause of 100 ms. It belongs to the event
/// loop's thread.
final class NotificationChannel {
  private let socket: NotifySocket
  private let timers: any Timers
  private let watches: any DescriptorWatches
  /// Whether a process is one of the worker's.
  private let isSender: (Int32) -> Bool
  private let log: (DaemonLog.Priority, String) -> Void
  private var watch: EventLoop.Token?
  private var watchdog: WatchdogSigns

  init(
    _ socket: NotifySocket, timers: any Timers, watches: any DescriptorWatches,
    isSender: @escaping (Int32) -> Bool, log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.socket = socket
    self.timers = timers
    watchdog = WatchdogSigns(slept: timers.slept)
    self.watches = watches
    self.isSender = isSender
    self.log = log
  }

  deinit { end() }

  var path: String { socket.path }

  /// Starts to watch the socket. `isReadable` is called whenever there is something for `receive`.
  func listen(_ isReadable: @escaping () -> Void) throws(SystemCallError) {
    if watch == nil { watch = try watches.whenReadable(socket.descriptor, do: isReadable) }
  }

  func end() {
    if let watch { watches.unwatch(socket.descriptor, watch) }
    watch = nil
  }

  /// Reads what the worker has sent.
  ///
  /// - Parameter limit: the maximum number of datagrams.
  func receive(limit: Int) -> (messages: [NotifyMessage], requests: [StoreRequest]) {
    // A socket that can't be read is ignored: the next run has a new one.
    let messages =
      (try? socket.receive(limit: limit, at: timers.now.nanoseconds, isMember: isSender)) ?? []
    if !socket.mayReceive { pause() }
    return (messages, socket.drainStoreRequests())
  }

  /// Stops reading for a moment, because the worker sends more than its limit. Its datagrams wait
  /// in the kernel, which blocks senders when its queue is full.
  private func pause() {
    guard let watch else { return }
    // If the watch can't be changed, the socket is read without a pause. Nothing is lost.
    try? watches.change(socket.descriptor, watch, to: [])
    timers.after(.milliseconds(100)) { [weak self] in
      guard let self, let watch = self.watch else { return }
      do throws(SystemCallError) {
        try watches.change(socket.descriptor, watch, to: .readable)
      } catch { log(.warning, "NOTIFY_SOCKET is no longer read: \(error)") }
    }
  }

  /// The worker gave a sign of life: `WATCHDOG=1`.
  func recordSign() { watchdog.seen(at: timers.now) }

  /// The time of the worker's last sign of life, as far as `receive` has read the socket.
  func lastSign() -> Instant? {
    let now = timers.now
    // More is waiting than is read at a time, so the worker is alive.
    if !socket.mayReceive { watchdog.seen(at: now) }
    return watchdog.sign(at: now, slept: timers.slept)
  }
}

extension WorkerProcess {
  /// Whether a process is one of the worker's. It is also true of the worker's first process when
  /// that has ended and isn't waited for yet, because its last messages count. A process that can't
  /// be read has been waited for, and isn't the worker's.
  func ownsSender(_ pid: Int32) -> Bool {
    (try? ProcessStat.read(pid))?.identity == identity || owns(pid)
  }
}
