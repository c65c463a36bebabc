import Linux

/// Repeats a step of a fill while it fails for a reason that may pass: no descriptor or memory is
/// free, or the image can't be read from the disk. Meanwhile threads of the worker that need a page
/// wait in the kernel, and the image stays. The only limit is the worker's end: to end the worker
/// would lose its memory, which only waits.
struct FillRetry {
  private let processes: [ProcessIdentity]
  private let report: (HibernationError) -> Void
  /// The first failure is reported when it has lasted for this time, in ns.
  private static let reportDelay: Int64 = 1_000_000_000
  private static let maxPause = Duration.milliseconds(500)

  /// - Parameter report: called once for each step that takes longer than `reportDelay`, with an
  ///   error that leaves the worker `intact`.
  init(_ processes: [ProcessIdentity], report: @escaping (HibernationError) -> Void) {
    self.processes = processes
    self.report = report
  }

  /// Runs a step, again and again until it succeeds or can't.
  func run<Value, Failure: Error>(
    _ step: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var pause = Duration.milliseconds(2)
    var began: Int64?
    var isReported = false
    while true {
      do throws(Failure) { return try step() } catch {
        guard HibernationError.isTransient(error), !processes.allSatisfy(\.hasEnded) else {
          throw error
        }
        let now = Clocks.monotonic
        if now - (began ?? now) >= Self.reportDelay, !isReported {
          isReported = true
          report(HibernationError(.filling, HibernationError.from(error, in: .filling).reason))
        }
        began = began ?? now
        pauseThread(for: pause)
        pause = min(pause * 2, Self.maxPause)
      }
    }
  }
}

extension Pager {
  /// Reads the next message of a process. A message of a fork brings a descriptor: while none is
  /// free, the kernel keeps the message.
  func nextMessage(of process: LazyProcess) throws -> FaultJournal.Received? {
    try retry.run { try process.journal.read(from: process.userfault) }
  }

  /// Returns the mappings of a process; none if it has no memory any more.
  func mappings(of pid: Int32) throws -> [MemoryMapping] {
    try retry.run { () throws(SystemCallError) in
      do throws(SystemCallError) { return try MemoryMapping.all(of: pid) } catch {
        if error.meansVanished { return [] }
        throw error
      }
    }
  }
}
