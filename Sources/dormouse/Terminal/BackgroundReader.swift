import Control
import Linux
import Synchronization

/// Reads in the background: a file system or a process that hangs must not stop the screen.
final class BackgroundReader: Sendable {
  enum Update: Sendable {
    case processorTimes([String: ProcessorReading])
    case processes(TopProcesses)
    case log(TopLog)
    case others(TopOthers)
  }

  private let jobs = JobPool(name: "dormouse-top", maxOrdinary: 8, endsAfter: .seconds(5))
  /// Logs have threads of their own, so that logs that hang leave the others free.
  private let logJobs = JobPool(name: "dormouse-logs", maxOrdinary: 4, endsAfter: .seconds(5))
  private let updates = Mutex<[Update]>([])
  private let counter: EventCounter

  init() throws { counter = try EventCounter() }

  /// The descriptor that is readable while results wait.
  var descriptor: Int32 { counter.descriptor.raw }

  /// Reads in the background. Nothing happens while an earlier read about the same `subject` runs.
  func read(
    about subject: String, isLog: Bool = false, _ body: @escaping @Sendable () -> Update
  ) {
    _ = (isLog ? logJobs : jobs).submitIfIdle(about: subject) { [self] in
      let result = body()
      return { [self] in
        updates.withLock { $0.append(result) }
        counter.signal()
      }
    }
  }

  func drain() -> [Update] {
    counter.clear()
    return updates.withLock { updates in
      defer { updates = [] }
      return updates
    }
  }
}
