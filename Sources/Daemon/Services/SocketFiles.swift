import Linux
import Policy
import Supervision

/// Creates and removes the files of Unix sockets: those of `listen` and of workers' channels. They
/// may be in any file system, so this is done on other threads. The creation of a file waits for a
/// removal at the same path. Belongs to the loop's thread.
final class SocketFiles {
  private let jobs: LoopJobs
  private let threads: JobPool
  /// The removals that may not have ended, and the last ones that have, by path.
  private(set) var removals: [String: OneTimeEvent] = [:]
  /// With more removals than this, those that have ended are forgotten: each worker of `run` may
  /// have a new name.
  static let maxRemovals = 64

  init(_ jobs: LoopJobs, _ threads: JobPool = .files) {
    self.jobs = jobs
    self.threads = threads
  }

  /// Removes the file of a listener. If an earlier removal at the same path hangs, the file stays:
  /// no process listens there, and the file is removed when a socket is opened there again.
  func remove(_ listener: Listener) {
    guard let path = listener.socket.filePath else { return }
    remove(at: path) { listener.removeFile() }
  }

  /// Removes the file of a channel, which only the daemon creates in its directories. An abstract
  /// name has no file.
  func remove(_ path: String) {
    if !path.hasPrefix("@") { remove(at: path) { discardFile(path) } }
  }

  private func remove(at path: String, _ removal: @escaping @Sendable () -> Void) {
    if removals.count >= Self.maxRemovals { removals = removals.filter { !$0.value.isRaised } }
    let end = OneTimeEvent()
    let isAccepted = threads.submitIfIdle(about: "removal of \(path)") {
      removal()
      end.raise()
      return {}
    }
    if isAccepted { removals[path] = end }
  }

  /// Waits for all removals. Called at the daemon's end, when its loop has ended.
  func drain(within limit: Duration) {
    let deadline = Deadline(in: limit)
    for removal in removals.values { removal.wait(until: deadline) }
  }

  typealias Opened = Result<Listener, ListenError>

  /// Opens the sockets that have a file. `then` is called on the loop; it is called at once if
  /// there are none.
  func open(
    _ sockets: [ListenSocket], of worker: String, for account: Account?, isForGroup: Bool,
    within limit: Duration, then: @escaping (JobOutcome<[Opened]>) -> Void
  ) {
    let wanted = sockets.compactMap { socket in
      socket.filePath.map { (socket: socket, removal: removals[$0]) }
    }
    guard !wanted.isEmpty else { return then(.done([])) }
    jobs.run(about: "sockets of \(worker)", within: limit) {
      wanted.map { socket, removal -> Opened in
        removal?.wait()
        do throws(ListenError) {
          return .success(try Listener.open(socket, for: account, isForGroup: isForGroup))
        } catch { return .failure(error) }
      }
    } then: {
      then($0)
    }
  }

  /// Opens a worker's channels. `then` is called on the loop.
  func open(
    _ plan: ChannelPlan, within limit: Duration,
    then: @escaping (JobOutcome<Result<ChannelPlan.Made, Refusal>>) -> Void
  ) {
    let removals = plan.paths.compactMap { self.removals[$0] }
    jobs.run(about: "channels of \(plan.name)", within: limit) {
      for removal in removals { removal.wait() }
      do { return .success(try plan.open()) } catch {
        return .failure(Refusal(text: "\(error)"))
      }
    } then: {
      then($0)
    }
  }
}
