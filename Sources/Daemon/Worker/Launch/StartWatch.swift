import Linux
import Supervision

/// A child between fork and execve. Tests have a fake.
protocol StartingWorker: AnyObject {
  /// Readable when `poll` may have a new result.
  var report: Descriptor { get }
  var pid: Int32 { get }
  /// Returns the process when its program runs; nil: that isn't known yet.
  func poll() throws(LaunchError) -> WorkerProcess?
  /// The deadline is reached: a child that hasn't executed its program by now is killed. Never
  /// returns nil.
  func expire() throws(LaunchError) -> WorkerProcess?
  func abandon()
}

extension WorkerStart: StartingWorker {}

/// Watches one child between fork and execve. Belongs to the loop's thread.
final class StartWatch {
  private let loop: any Timers & DescriptorWatches
  private var start: (any StartingWorker)?
  private var watch: EventLoop.Token?
  private var timer: EventLoop.Token?
  private var report: ((Result<WorkerProcess, LaunchError>) -> Void)?

  /// The pid of the child, which no other component may wait for.
  var pid: Int32? { start?.pid }

  init(_ loop: any Timers & DescriptorWatches) { self.loop = loop }

  /// Calls back once, when the worker's program runs or the launch has failed. That is at the
  /// deadline at the latest, and perhaps before this returns.
  func begin(
    _ start: any StartingWorker, within limit: Duration,
    then report: @escaping (Result<WorkerProcess, LaunchError>) -> Void
  ) {
    self.report = report
    self.start = start
    do throws(SystemCallError) {
      watch = try loop.whenReadable(start.report) { [unowned self] in
        check { () throws(LaunchError) in try start.poll() }
      }
    } catch {
      start.abandon()
      return end(.failure(.stuck("can't watch its start: \(error)")))
    }
    timer = loop.after(limit) { [unowned self] in
      timer = nil
      check { () throws(LaunchError) in try start.expire() }
    }
  }

  /// Kills the child, because the launch isn't wanted any more. Nothing is reported.
  func abandon() {
    guard let start else { return }
    start.abandon()
    report = nil
    stop()
  }

  private func check(_ body: () throws(LaunchError) -> WorkerProcess?) {
    do throws(LaunchError) {
      if let process = try body() { end(.success(process)) }
    } catch { end(.failure(error)) }
  }

  private func end(_ outcome: Result<WorkerProcess, LaunchError>) {
    stop()
    let report = report
    self.report = nil
    report?(outcome)
  }

  private func stop() {
    if let start, let watch { loop.unwatch(start.report, watch) }
    if let timer { loop.cancel(timer) }
    (watch, timer, start) = (nil, nil, nil)
  }
}
