import Hibernation
import Lifecycle
import Linux
import Policy

/// What belongs to the sleep of workers and to no single run. The directives that put a worker to sleep and wake it
/// go to its run's `WorkerSleep`. Belongs to the loop's thread.
final class WorkerSleeps {
  private unowned let daemon: Daemon
  /// Why writes can't be tracked, as logged.
  private var loggedRefusals: Set<String> = []

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// For a new run, or an adopted one.
  func makeSleep(for runtime: WorkerRuntime) {
    let adaptor = SleepOfWorker(daemon, runtime)
    runtime.sleep = WorkerSleep(
      runtime.id, driver: daemon.driver, clock: daemon.loop, mechanics: adaptor, host: adaptor)
  }

  func inspect(_ id: WorkerID) {
    guard let runtime = daemon.workers[id], runtime.process != nil, let sleep = runtime.sleep else {
      return daemon.driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  /// A hibernation has succeeded.
  func note(_ summary: HibernationSummary, of runtime: WorkerRuntime, took duration: Duration) {
    let id = runtime.id
    let written = Int64(summary.written)
    daemon.imageDisk.imageWritten(
      of: id.name, length: Int64(summary.imageLength), bytes: written, took: duration)
    runtime.lastHibernation = (written, Int64(summary.unchanged), duration.seconds)
    // The same for each worker and each time.
    if let why = summary.trackingRefusal, loggedRefusals.insert(why).inserted {
      daemon.log(
        .info,
        "\(id): its next image takes comparing pages, because writes can't be tracked: \(why)")
    }
    if let files = summary.filePages { log(files, of: id) }
    if summary.image.restore.isLazy { daemon.startStandbyPager() }
  }

  private func log(_ files: FilePages.Outcome, of id: WorkerID) {
    daemon.log(
      .info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of its files' pages left, too")
    if let refusal = files.refusal {
      daemon.log(
        .notice,
        "\(id): its files' pages stay until the kernel drops them, although "
          + "hibernate.drop_file_pages is on: \(refusal)")
    }
  }

  /// After a wake that failed. Where a thread stood in a trace stop of ours, it is released as soon as
  /// it can be; then the worker has to be woken again.
  func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    daemon.loop.after(.seconds(1)) { [unowned daemon] in
      guard daemon.engine.state(of: id)?.sleeps == true else { return }
      daemon.driver.send(
        .wakeNeeded(id, "a thread that an earlier hibernation held is being released"))
    }
  }
}
