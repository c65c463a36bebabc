import Hibernation
import Lifecycle
import Policy

/// What is done at a sample. Tests hand in their own.
protocol SamplingHost: AnyObject {
  /// The machine's memory, for the engine; and the sample of the workers begins.
  func beginSample()
  /// Looks at a worker that runs.
  func sample(_ runtime: WorkerUnit)
  /// Writes down what the daemon has learned, where that is due.
  func saveMemoryWhenDue()
  /// Looks at the disk of the images.
  func takeDiskReading()
  /// Removes what lies on that disk for no worker's next image.
  func dropOutdatedBases()
}

/// Says what is looked at when. At each sample that is the machine's memory, and each worker that runs. A worker
/// that sleeps costs nothing: what is frozen doesn't change. Between two samples nothing wakes the daemon.
/// Belongs to the loop's thread.
final class RegularSampling {
  /// From one sample to the next.
  struct Pace {
    /// While some worker runs.
    var running = Duration.seconds(1)
    /// While none does.
    var resting = Duration.seconds(1)
  }

  /// Samples from one look at the disk to the next: for midnight, and for what others write to it.
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
    _ clock: any Timers, _ driver: EngineDriver, _ workers: WorkerRegistry, _ pace: Pace,
    _ host: any SamplingHost
  ) {
    self.clock = clock
    self.driver = driver
    self.workers = workers
    self.pace = pace
    self.host = host
    lastSweep = clock.now
  }

  /// Takes a sample, and further ones from now on.
  func sampleRegularly() {
    if let next { clock.cancel(next) }
    host.beginSample()
    let running = workers.values.filter { driver.state.state(of: $0.id)?.runs == true }
    for runtime in running {
      host.sample(runtime)
      clock.checkpoint()
    }
    count += 1
    host.saveMemoryWhenDue()
    if count % Self.samplesPerDiskReading == 1 { host.takeDiskReading() }
    if clock.now - lastSweep > Self.sweepEvery {
      lastSweep = clock.now
      host.dropOutdatedBases()
    }
    takeNext(after: running.isEmpty ? pace.resting : pace.running)
  }

  /// It has just been woken: a sample is due at once, and compares with nothing from before.
  func sampleAnew(_ runtime: WorkerUnit) {
    runtime.sample = ActivitySample()
    if let next { clock.cancel(next) }
    takeNext(after: .zero)
  }

  private func takeNext(after delay: Duration) {
    next = clock.after(delay) { [unowned self] in
      next = nil
      sampleRegularly()
    }
  }
}

/// What `RegularSampling` gets of the daemon.
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

  init(_ parts: Parts) { self.parts = parts }

  func beginSample() {
    parts.pressure.takeReading()
    parts.activity.beginSamples()
  }

  func sample(_ runtime: WorkerUnit) {
    guard let process = runtime.process else { return }
    if parts.driver.state.state(of: runtime.id) != .launching {
      parts.logs.keepSmall(process.plan.logPlace, of: runtime.id, runtime.configuration.output)
    }
    parts.kernelKills.lookForKernelKills(of: runtime)
    parts.activity.sample(runtime)
  }

  func saveMemoryWhenDue() { parts.learnedMemory.saveWhenDue() }
  func takeDiskReading() { parts.imageDisk.takeReading() }
  func dropOutdatedBases() { _ = parts.hibernation.dropIdleBases(outdated: true) }
}
