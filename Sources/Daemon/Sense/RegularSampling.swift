import Hibernation
import Lifecycle
import Policy

/// The actions of a sample. Tests provide their own.
protocol SamplingHost: AnyObject {
  /// Samples the machine's memory for the engine, and begins the sample of the workers.
  func beginSample()
  /// Looks at a worker that runs.
  func sample(_ runtime: WorkerUnit)
  /// Saves what the daemon has learned, if that is due.
  func saveMemoryWhenDue()
  /// Looks at the disk of the images.
  func sendDiskReading()
  /// Removes files from that disk that no worker's next image needs.
  func dropOutdatedBases()
}

/// The time from one sample to the next.
package struct SamplingPace {
  /// While some worker runs.
  package var running: Duration
  /// While none does.
  package var resting: Duration

  package init(running: Duration = .seconds(1), resting: Duration = .seconds(1)) {
    self.running = running
    self.resting = resting
  }
}

/// Decides what is sampled when. Each sample looks at the machine's memory, and at each running worker. A
/// sleeping worker costs nothing, because it doesn't change while it is frozen. Nothing wakes the daemon
/// between two samples. Belongs to the loop's thread.
final class RegularSampling {
  typealias Pace = SamplingPace

  /// Samples from one look at the disk to the next: for midnight, and for other programs that write to the
  /// disk.
  private static let samplesPerDiskReading = 60
  private static let sweepEvery = Duration.seconds(3600)

  private let clock: any Timers
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let pace: Pace
  private let host: any SamplingHost
  private var count = 0
  private var lastSweep: Instant
  private var next: EventLoop.Token?

  init(
    clock: any Timers, driver: EngineDriver, workers: WorkerRegistry, pace: Pace,
    host: any SamplingHost
  ) {
    self.clock = clock
    self.driver = driver
    self.workers = workers
    self.pace = pace
    self.host = host
    lastSweep = clock.now
  }

  /// Takes a sample, and regular ones from now on.
  func sampleRegularly() {
    if let next { clock.cancel(next) }
    host.beginSample()
    let running = driver.state.runningWorkers.compactMap { workers[$0] }
    for runtime in running {
      host.sample(runtime)
      clock.checkpoint()
    }
    count += 1
    host.saveMemoryWhenDue()
    if count % Self.samplesPerDiskReading == 1 { host.sendDiskReading() }
    if clock.now - lastSweep > Self.sweepEvery {
      lastSweep = clock.now
      host.dropOutdatedBases()
    }
    scheduleNext(after: running.isEmpty ? pace.resting : pace.running)
  }

  /// It has just been woken: a sample is due at once, and compares with nothing from before.
  func sampleAnew(_ runtime: WorkerUnit) {
    runtime.sample = ActivitySample()
    if let next { clock.cancel(next) }
    scheduleNext(after: .zero)
  }

  private func scheduleNext(after delay: Duration) {
    next = clock.at(clock.now + delay) { [unowned self] in
      next = nil
      sampleRegularly()
    }
  }
}

/// The daemon's implementation for `RegularSampling`.
final class SamplingOfDaemon: SamplingHost {
  struct Parts {
    let driver: EngineDriver
    let pressure: PressureMonitor
    let activity: ActivitySampler
    let logs: LogKeeper
    let kernelKills: KernelKillWatch
    let learnedMemory: LearnedMemoryKeeper
    let imageDisk: ImageDiskMonitor
    let hibernation: HibernationService
  }

  private let parts: Parts

  init(_ parts: Parts) {
    self.parts = parts
    parts.logs.mayTouch = { [driver = parts.driver] id in driver.state.state(of: id)?.runs == true }
  }

  func beginSample() {
    parts.pressure.sendReading()
    parts.activity.beginSamples()
  }

  func sample(_ runtime: WorkerUnit) {
    // A worker that hasn't run has written nothing to its log, and none of its processes was killed.
    guard runtime.process != nil, parts.activity.sample(runtime) else { return }
    if parts.driver.state.state(of: runtime.id) != .launching { parts.logs.keepSmall(runtime) }
    parts.kernelKills.lookForKernelKills(of: runtime)
  }

  func saveMemoryWhenDue() { parts.learnedMemory.saveWhenDue() }
  func sendDiskReading() { parts.imageDisk.sendReading() }
  func dropOutdatedBases() { _ = parts.hibernation.dropIdleBases(outdated: true) }
}
