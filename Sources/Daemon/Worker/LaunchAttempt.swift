import Lifecycle
import Linux
import Supervision

/// One launch from the directive to its outcome: looking up what it depends on, preparing and the fork (on
/// other threads), then starting (a child between fork and execve). At most one for each worker. Belongs to the loop's thread.
final class LaunchAttempt {
  /// As soon as it is made.
  var cgroup: WorkerCgroup?
  private let loop: EventLoop
  private var start: WorkerStart?
  private var watch: EventLoop.Token?
  private var timer: EventLoop.Token?
  private var report: ((Result<WorkerProcess, LaunchError>) -> Void)?

  /// A child of this process that nobody else may reap.
  var pid: Int32? { start?.pid }

  init(_ loop: EventLoop) { self.loop = loop }

  /// Calls back once, when the worker's program runs or the launch has failed; at the deadline at the
  /// latest, and perhaps before this returns.
  func begin(
    _ forked: ForkedWorker, then report: @escaping (Result<WorkerProcess, LaunchError>) -> Void
  ) {
    self.report = report
    let start = WorkerStart(forked)
    self.start = start
    do throws(SystemCallError) {
      watch = try loop.watch(start.report, .readable) { [unowned self] _ in
        look { () throws(LaunchError) in try start.look() }
      }
    } catch {
      start.abandon()
      return end(.failure(.stuck("its start can't be watched: \(error)")))
    }
    timer = loop.after(WorkerStart.patience) { [unowned self] in
      timer = nil
      look { () throws(LaunchError) in try start.expire() }
    }
  }

  private func look(_ body: () throws(LaunchError) -> WorkerProcess?) {
    do throws(LaunchError) {
      if let process = try body() { end(.success(process)) }
    } catch { end(.failure(error)) }
  }

  private func end(_ outcome: Result<WorkerProcess, LaunchError>) {
    if let start, let watch { loop.unwatch(start.report, watch) }
    if let timer { loop.cancel(timer) }
    (watch, timer, start) = (nil, nil, nil)
    let report = report
    self.report = nil
    report?(outcome)
  }
}
