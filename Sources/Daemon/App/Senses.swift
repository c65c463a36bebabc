import Lifecycle
import Policy

/// The components of `Sense` that sample, measure and probe, and their connections.
final class Senses {
  let scanner: ProcessScanner
  let meter: FootprintMeter
  let activity: ActivitySampler
  let kernelKills: KernelKillWatch
  let safePoints: SafePointCheck
  let probes: ProbeAsker
  let liveness: LivenessSupervisor
  let imageDisk: ImageDiskMonitor
  let sampling: RegularSampling
  let logs: LogKeeper
  let encryption: EncryptionTrial

  init(
    services: Services, driver: EngineDriver, workers: WorkerRegistry, role: DaemonRole,
    state: StateDirectory, jetsam: JetsamKeeper, learnedMemory: LearnedMemoryKeeper,
    restarts: RestartSupervisor, pressure: PressureMonitor, logs: LogKeeper
  ) {
    let loop = services.loop
    let log: (DaemonLog.Priority, String) -> Void = services.log.callAsFunction
    let launchedAt: (WorkerID) -> Instant = restarts.launchedAt
    scanner = ProcessScanner(
      services, onlyDescendants: role.scansOnlyDescendants, launchedAt: launchedAt)
    meter = FootprintMeter(
      clock: loop, driver: driver, workers: workers, source: MeasuringThreads(services: services),
      log: log)
    let activitySource = KernelActivitySource(
      loop: loop, jobs: services.jobs, driver: driver, scanner: scanner, metersWork: role.metersWork
    )
    activity = ActivitySampler(
      clock: loop, driver: driver, workers: workers, source: activitySource, meter: meter)
    kernelKills = KernelKillWatch(
      clock: loop, driver: driver, jetsam: jetsam,
      counts: .kernel { [pressure] in pressure.stalledMicroseconds }, log: log)
    let largest = LargestProcessScan(jobs: services.jobs, workers: workers)
    jetsam.measure = { largest.measure(then: $0) }
    safePoints = SafePointCheck(services: services, driver: driver, workers: workers)

    probes = ProbeAsker(loop, loop)
    liveness = LivenessSupervisor(
      timers: loop, driver: driver, probes: probes, activity: activity, launchedAt: launchedAt)

    imageDisk = ImageDiskMonitor(
      services: services, driver: driver, state: state, workers: workers,
      sharedImages: role.sharedImages)
    self.logs = logs
    sampling = RegularSampling(
      pace: role.pace, pressure: pressure,
      activity: activity, logs: logs, kernelKills: kernelKills,
      learnedMemory: learnedMemory, imageDisk: imageDisk)
    encryption = EncryptionTrial(services)
  }
}
