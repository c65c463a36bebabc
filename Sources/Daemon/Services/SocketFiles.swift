import Glibc
import Linux
import Policy
import Supervision

/// Files of Unix sockets, those of `listen` and workers' channels, which may be in any file system: they are
/// made and removed on other threads. Making a file waits for a removal at the same path. Belongs to the loop's
/// thread.
final class SocketFiles {
  private let jobs: LoopJobs
  private let threads: JobPool
  private var removals: [String: Signal] = [:]

  init(_ jobs: LoopJobs, _ threads: JobPool = .files) {
    self.jobs = jobs
    self.threads = threads
  }

  /// If an earlier removal at the same path hangs, the file stays: it is a dead socket's, which is removed when
  /// the next one is opened.
  func remove(_ listener: Listener) {
    guard let path = listener.filePath else { return }
    remove(at: path) { listener.removeFile() }
  }

  /// The file of a channel, which only the daemon makes in its directories. An abstract name has no file.
  func remove(_ path: String) {
    if !path.hasPrefix("@") { remove(at: path) { discardFile(path) } }
  }

  private func remove(at path: String, _ removal: @escaping @Sendable () -> Void) {
    let end = Signal()
    let isAccepted = threads.submitIfIdle(about: "removal of \(path)") {
      removal()
      end.raise()
      return {}
    }
    if isAccepted { removals[path] = end }
  }

  /// Called at the daemon's end, when its loop has ended.
  func drain(within limit: Duration) {
    let deadline = Deadline(in: limit)
    for removal in removals.values { removal.wait(until: deadline) }
  }

  typealias Opened = Result<Listener, ListenError>

  /// Opens those that have a file; `then` is called on the loop, at once where there are none.
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

  /// Makes a worker's channels; `then` is called on the loop.
  func open(
    _ plan: ChannelPlan, within limit: Duration,
    then: @escaping (JobOutcome<Result<ChannelPlan.Made, ChannelPlan.Refusal>>) -> Void
  ) {
    let removals = plan.paths.compactMap { self.removals[$0] }
    jobs.run(about: "channels of \(plan.name)", within: limit) {
      for removal in removals { removal.wait() }
      do { return .success(try plan.open()) } catch {
        return .failure(ChannelPlan.Refusal(text: "\(error)"))
      }
    } then: {
      then($0)
    }
  }
}
