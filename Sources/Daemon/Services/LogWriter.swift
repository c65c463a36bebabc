import Glibc
import Linux
import Synchronization

/// Writes lines on a thread of its own, in their order. If the reader is slow, up to `maxWaiting`
/// bytes wait. Further lines are dropped and counted, and a line in their position reports the
/// count.
final class LogWriter: Sendable {
  /// The maximum number of bytes that wait.
  static let maxWaiting = 1 << 20

  private let shared: Shared

  /// The state that the thread keeps alive. The thread doesn't keep the writer alive, because
  /// nothing waits for the end of the thread.
  private final class Shared: Sendable {
    struct State {
      var lines: [UInt8] = []
      var lost = 0
      /// Makes the line that reports lost lines.
      var report: (@Sendable (Int) -> [UInt8])?
      var hasThread = false
      var isWriting = false
      var isEnding = false
    }

    let state = Mutex(State())
    let work = Semaphore()
    /// The file that lines are written to; nil: standard error.
    let descriptor: Descriptor?

    init(_ descriptor: Descriptor?) { self.descriptor = descriptor }

    func run() {
      while true {
        work.wait()
        guard let next = nextBatch() else { return }
        write(next)
        state.withLock { $0.isWriting = false }
      }
    }

    private func nextBatch() -> [UInt8]? {
      state.withLock { state in
        if state.lines.isEmpty, state.isEnding { return nil }
        let report = state.lost > 0 ? state.report?(state.lost) : nil
        defer { (state.lines, state.lost, state.isWriting) = ([], 0, true) }
        return state.lines + (report ?? [])
      }
    }

    private func write(_ bytes: [UInt8]) {
      let target = descriptor?.raw ?? STDERR_FILENO
      var remaining = bytes[...]
      while !remaining.isEmpty {
        let count = remaining.withUnsafeBytes { buffer in
          kernelResult { Glibc.write(target, buffer.baseAddress, buffer.count) }
        }
        if count == -Int(EAGAIN) || count == -Int(EINTR) {
          // Another process has made standard error non-blocking, which holds for all processes
          // that share it.
          var request = pollfd(fd: target, events: Int16(POLLOUT), revents: 0)
          _ = poll(&request, 1, 1000)
          continue
        }
        // A failure to write the log can't be logged.
        guard count > 0 else { return }
        remaining = remaining.dropFirst(count)
      }
    }

    var isIdle: Bool { state.withLock { $0.lines.isEmpty && !$0.isWriting } }
  }

  init(_ descriptor: Descriptor?) { shared = Shared(descriptor) }

  deinit {
    drain(within: .seconds(1))
    shared.state.withLock { $0.isEnding = true }
    shared.work.signal()
  }

  /// Adds a line. May be called from any thread, and doesn't wait. `report` makes the line that
  /// stands for lost lines.
  func write(_ line: [UInt8], report: @escaping @Sendable (Int) -> [UInt8]) {
    let needsThread = shared.state.withLock { state in
      if state.lines.count + line.count > Self.maxWaiting {
        state.lost += 1
        state.report = report
        return false
      }
      state.lines += line
      defer { state.hasThread = true }
      return !state.hasThread
    }
    if needsThread {
      let started = Thread.start(name: "dormouse-log") { [shared] in shared.run() }
      if !started { shared.state.withLock { $0.hasThread = false } }
    }
    shared.work.signal()
  }

  /// Waits until all lines are written. Called only at the daemon's end, when its loop doesn't run
  /// any more.
  func drain(within limit: Duration) {
    let deadline = Deadline(in: limit)
    while !shared.isIdle, !deadline.hasPassed { pauseThread(for: .microseconds(500)) }
  }
}
