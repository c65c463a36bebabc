import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

// The directives that put a worker to sleep and wake it go to its run's `WorkerSleep`.

extension Daemon {
  /// For a new run, or an adopted one.
  func makeSleep(for runtime: WorkerRuntime) {
    let adaptor = SleepOfWorker(self, runtime)
    runtime.sleep = WorkerSleep(
      runtime.id, driver: driver, clock: loop, mechanics: adaptor, host: adaptor)
  }

  func inspect(_ id: WorkerID) {
    guard let runtime = workers[id], runtime.process != nil, let sleep = runtime.sleep else {
      return driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  /// A hibernation has succeeded.
  func note(_ summary: HibernationSummary, of runtime: WorkerRuntime, took duration: Duration) {
    let id = runtime.id
    let written = Int64(summary.written)
    imageDisk.imageWritten(
      of: id.name, length: Int64(summary.imageLength), bytes: written, took: duration)
    runtime.lastHibernation = (written, Int64(summary.unchanged), duration.seconds)
    // The same for each worker and each time.
    if let why = summary.trackingRefusal, toldTrackingRefusals.insert(why).inserted {
      log(
        .info,
        "\(id): its next image takes comparing pages, because writes can't be tracked: \(why)")
    }
    if let files = summary.filePages { tell(files, of: id) }
    if summary.image.restore.isLazy { standbyStarter.startStandbyPager() }
  }

  private func tell(_ files: FilePages.Outcome, of id: WorkerID) {
    log(.info, "\(id): \(ByteCount(Int64(clamping: files.dropped))) of its files' pages left, too")
    if let refusal = files.refusal {
      log(
        .notice,
        "\(id): its files' pages stay until the kernel drops them, although "
          + "hibernate.drop_file_pages is on: \(refusal)")
    }
  }

  /// After a wake that failed. Where a thread stood in a trace stop of ours, it is released as soon as
  /// it can be; then the worker has to be woken again.
  func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    loop.after(.seconds(1)) { [unowned self] in
      guard engine.state(of: id)?.sleeps == true else { return }
      driver.send(.wakeNeeded(id, "a thread that an earlier hibernation held is being released"))
    }
  }

  static func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return "\(error)" }
  }
}
