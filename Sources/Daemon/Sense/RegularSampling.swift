import Lifecycle
import Policy

/// The time from one sample to the next.
package struct SamplingPace {
  /// The time while at least one worker runs.
  package var running: Duration
  /// The time while no worker runs.
  package var resting: Duration

  package init(running: Duration = .seconds(1), resting: Duration = .seconds(1)) {
    self.running = running
    self.resting = resting
  }
}

/// Decides what is sampled when. Each sample reads the machine's memory, and samples each running
/// worker. A sleeping worker costs nothing, because it doesn't change while it is frozen. Nothing
/// wakes the daemon between two samples. It belongs to the event loop's thread.
final class RegularSampling {
  private let pace: SamplingPace
  private let pressure: PressureMonitor
  private let activity: ActivitySampler
  private let logs: LogKeeper
  private let kernelKills: KernelKillWatch
  private let learnedMemory: LearnedMemoryKeeper
  private let imageDisk: ImageDiskMonitor
  private var next: EventLoop.Token?

  init(
    pace: SamplingPace, pressure: PressureMonitor, activity: ActivitySampler, logs: LogKeeper,
    kernelKills: KernelKillWatch, learnedMemory: LearnedMemoryKeeper, imageDisk: ImageDiskMonitor
  ) {
    self.pace = pace
    self.pressure = pressure
    self.activity = activity
    self.logs = logs
    self.kernelKills = kernelKills
    self.learnedMemory = learnedMemory
    self.imageDisk = imageDisk
    logs.mayRotate = { [driver = activity.driver] in driver.state.state(of: $0)?.runs == true }
  }

  private var clock: any Timers { activity.clock }

  /// Takes a sample, and schedules regular ones from now on.
  func sampleRegularly() {
    if let next { clock.cancel(next) }
    next = nil
    pressure.sendReading()
    activity.source.collectLatches()
    let running = activity.driver.state.runningWorkers.compactMap { activity.workers[$0] }
    for worker in running {
      sample(worker)
      clock.checkpoint()
    }
    learnedMemory.saveWhenDue()
    imageDisk.sampleIsTaken(at: clock.now)
    // A worker that was woken meanwhile has scheduled the next one.
    if next == nil { scheduleNext(after: running.isEmpty ? pace.resting : pace.running) }
  }

  private func sample(_ worker: WorkerUnit) {
    // A worker that hasn't run has written nothing to its log, and none of its processes was
    // killed.
    guard worker.process != nil, activity.sample(worker) else { return }
    if activity.driver.state.state(of: worker.id) != .launching { logs.checkLog(worker) }
    kernelKills.checkForKernelKills(of: worker)
  }

  /// Samples a worker at once that was just woken. The sample compares with nothing from before.
  func sampleAtOnce(_ worker: WorkerUnit) {
    worker.sample = ActivitySample()
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
