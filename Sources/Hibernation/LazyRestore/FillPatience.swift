import Linux

/// Repeats a step of a fill while it fails for a reason that may pass: no descriptor or memory is free, or the disk
/// doesn't give the image. Threads of the worker that need a page wait in the kernel meanwhile, and its image
/// stays. There is no limit but the worker's end: to end it would lose what only waits.
struct FillPatience {
  private let processes: [ProcessIdentity]
  private let report: (HibernationError) -> Void
  /// The first failure is reported when it has lasted for this time, in ns.
  private static let silence: Int64 = 1_000_000_000
  private static let longestPause = Duration.milliseconds(500)

  /// - Parameter report: called once for each step that takes long, with an error that leaves the worker `intact`.
  init(_ processes: [ProcessIdentity], report: @escaping (HibernationError) -> Void) {
    self.processes = processes
    self.report = report
  }

  func of<Value, Failure: Error>(
    _ step: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var pause = Duration.milliseconds(2)
    var began: Int64?
    var isReported = false
    while true {
      do throws(Failure) { return try step() } catch {
        guard HibernationError.mayPass(error), !processes.allSatisfy(\.hasEnded) else {
          throw error
        }
        let now = Clocks.monotonic
        if now - (began ?? now) >= Self.silence, !isReported {
          isReported = true
          report(HibernationError(.filling, HibernationError.from(error, in: .filling).reason))
        }
        began = began ?? now
        pauseThread(for: pause)
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }
}

extension Pager {
  /// A message of a fork brings a descriptor: without a free one the kernel keeps it.
  func nextMessage(of process: LazyProcess) throws -> FaultJournal.Received? {
    try patience.of { try process.journal.read(from: process.userfault) }
  }

  func mappings(of process: LazyProcess) throws -> [MemoryMapping] {
    try patience.of { () throws(SystemCallError) in try MemoryMapping.all(of: process.pid) }
  }
}
