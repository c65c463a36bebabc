import Control
import Linux

/// The workers whose output is wanted. The daemon is asked for them at each call.
struct ChosenLogs {
  /// Names and patterns; all workers if it is empty.
  var names: [String]
  var connection: ConnectionOptions

  enum Look {
    case more([WorkerLogPlace])
    /// Nothing more will be written, for this reason.
    case over(String)
  }

  /// Returns the logs. A worker that was named by its full name must exist, and have a log.
  func logs() throws -> [WorkerLogPlace] {
    var daemon = try connection.connect()
    let all = try daemon.ask(.ps).workers ?? []
    let chosen = try names.isEmpty ? all : WorkerPatterns(names).workers(among: all)
    for worker in chosen where worker.log == nil && names.contains(worker.name) {
      throw CommandFailure(exit: .notDone, text: "\(escaped(worker.name)) has no log")
    }
    return chosen.compactMap(WorkerLogPlace.init)
  }

  /// Returns the logs as they are now. At an upgrade the next daemon may be starting, so it is
  /// tried for some seconds.
  func look() -> Look {
    for attempt in 0..<50 {
      if attempt > 0 { pauseThread(for: .milliseconds(100)) }
      do {
        var daemon = try connection.connect()
        let all = try daemon.ask(.ps).workers ?? []
        let chosen = fitting(all)
        if !names.isEmpty, !chosen.contains(where: { !isOver($0) }) {
          return .over(
            chosen.isEmpty ? "no such worker is there any more" : "all of them have ended")
        }
        return .more(chosen.compactMap(WorkerLogPlace.init))
      } catch {}  // There is no daemon now.
    }
    return .over("the daemon has ended")
  }

  private func fitting(_ all: [WorkerReport]) -> [WorkerReport] {
    if names.isEmpty { return all }
    // A name that no worker has any more isn't an error here.
    return all.filter { worker in
      names.contains { WorkerPatterns([$0]).fits(worker) }
    }
  }

  private func isOver(_ worker: WorkerReport) -> Bool {
    worker.state == "terminated" && worker.restartsInSeconds == nil && worker.waitsFor == nil
  }
}
