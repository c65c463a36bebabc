import Lifecycle
import Linux
import Policy

/// What the daemon samples, measures and probes with: the components of `Sense`, and how they are put together.
final class Senses {
  let scanner: ProcessScanner
  let meter: FootprintMeter
  let activity: ActivitySampler
  let kernelKills: KernelKillWatch
  let safePoints: SafePointCheck
  let probes: ProbeAsker
  let liveness: LivenessSupervisor
  let watchdogs: WatchdogReporter
  let imageDisk: ImageDiskMonitor
  let imageRemover: ImageRemover
  let hibernationCosts: HibernationCosts
  let sampling: RegularSampling
  let encryption: EncryptionTrial

  init(_ daemon: Daemon) {
    let (services, driver, workers) = (daemon.services, daemon.driver, daemon.workers)
    let (loop, role) = (services.loop, daemon.role)
    let log: (DaemonLog.Priority, String) -> Void = services.log.callAsFunction
    let launchedAt: (WorkerID) -> Instant = { [unowned daemon] in
      daemon.restarts.launchedAt(of: $0)
    }

    scanner = ProcessScanner(
      services, onlyDescendants: role.looksAtDescendantsOnly, launchedAt: launchedAt)
    meter = FootprintMeter(loop, driver, workers, MeasuringThreads(services), log: log)
    let looks = ActivityLooks(loop, services.jobs, driver, scanner, metersWork: role.metersWork)
    activity = ActivitySampler(loop, driver, workers, looks, meter)
    let counts = KernelKillCounts.kernel { [pressure = daemon.pressureMonitor] in
      pressure.stalledMicroseconds
    }
    kernelKills = KernelKillWatch(loop, driver, daemon.jetsam, counts, log: log)
    safePoints = SafePointCheck(services, driver, workers)

    probes = ProbeAsker(loop, loop)
    liveness = LivenessSupervisor(loop, driver, probes, activity, launchedAt: launchedAt)
    watchdogs = WatchdogReporter(driver, workers) { [unowned daemon] in
      daemon.saveRecord($0, state: $1)
    }

    let state = daemon.state
    let look = ImageDiskLook(
      services.jobs, directory: state.images, workers, sharedImages: role.sharedImages,
      image: state.image(of:))
    imageDisk = ImageDiskMonitor(services, driver, state, look)
    imageRemover = ImageRemover(
      services.disk, services.loopReturn, imageDisk, image: state.image(of:))
    hibernationCosts = HibernationCosts(imageDisk, log: log)

    sampling = RegularSampling(loop, driver, workers, role.pace, SamplingOfDaemon(daemon))
    encryption = EncryptionTrial(services)
  }
}
