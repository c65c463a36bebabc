import Control

/// The workers whose output is wanted. The daemon is asked for them at each call.
struct ChosenLogs {
  /// Names and patterns; all workers if it is empty.
  var names: [String]
  var connection: ConnectionOptions

  enum Poll {
    case more([WorkerLog])
    /// Nothing more will be written, for this reason.
    case ended(String)
  }

  /// Returns the logs. A worker that was named by its full name must exist, and have a log.
  func logs() throws -> [WorkerLog] {
    var daemon = try connection.connect()
    let all = try daemon.ask(.ps).workers ?? []
    let chosen = try names.isEmpty ? all : WorkerPatterns(names).workers(among: all)
    for worker in chosen where worker.log == nil && names.contains(worker.name) {
      throw CommandFailure(.notDone, "\(escaped(worker.name)) has no log")
    }
    return chosen.compactMap(WorkerLog.init)
  }

  /// Returns the logs as they are now. At an upgrade the next daemon may be starting, so it is
  /// tried for some seconds.
  func poll() -> Poll {
    ConnectionOptions.askAcrossUpgrade(ask) ?? .ended("the daemon has ended")
  }

  /// Asks the daemon for the workers once.
  private func ask() throws -> Poll {
    let response: ControlResponse
    do throws(ControlError) {
      var client = try ControlClient(
        connectingTo: connection.path, isNamed: connection.socket != nil)
      response = try client.perform(.ps, timeout: .seconds(2))
    } catch {
      // The daemon is busy. The caller handles signals, and asks again.
      if case .timedOut = error { return .more([]) }
      throw error
    }
    guard response.result == .done else { throw CommandFailure(.notDone, response.text ?? "") }
    let chosen = fitting(response.workers ?? [])
    if !names.isEmpty, chosen.allSatisfy(\.isOver) {
      return .ended(
        chosen.isEmpty ? "no such worker is there any more" : "all of them have ended")
    }
    return .more(chosen.compactMap(WorkerLog.init))
  }

  private func fitting(_ all: [WorkerReport]) -> [WorkerReport] {
    if names.isEmpty { return all }
    // A name that no worker has any more isn't an error here.
    return all.filter { worker in
      names.contains { WorkerPatterns([$0]).fits(worker) }
    }
  }
}
