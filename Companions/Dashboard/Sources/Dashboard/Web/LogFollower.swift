import Control

/// Sends the end of a worker's log to its page, and the lines that are appended to it.
struct LogFollower: Sendable {
  let worker: String
  /// The id of the page.
  let viewer: Int
  let hub: Hub
  let files: BlockingPool

  private struct Problem: Encodable, Equatable {
    var problem: String
  }

  /// Runs until the task is cancelled.
  func run() async {
    var tail: LogTail?
    var last: Problem?
    while !Task.isCancelled {
      do {
        let log = hub.log(of: worker)
        // A worker with a new configuration may have another log.
        if tail?.log != log {
          tail = try await files.run { try log.map { try LogTail($0) } }
        }
        if let open = tail, let lines = try await files.run({ try open.next() }) {
          hub.send(ServerEvent("log", lines), to: viewer)
        }
        last = nil
      } catch {
        tail = nil
        let problem = Problem(problem: "\(error)")
        if problem != last { hub.send(ServerEvent("logproblem", problem), to: viewer) }
        last = problem
      }
      // The sleep ends early only if the page was closed.
      try? await Task.sleep(for: .milliseconds(400))
    }
  }
}
