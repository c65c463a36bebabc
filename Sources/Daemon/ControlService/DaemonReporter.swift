import Control
import Glibc
import Lifecycle
import Linux
import Policy

/// What `ps`, `status` and `doctor` report about the daemon itself. It belongs to the event loop's
/// thread.
struct DaemonReporter {
  let driver: EngineDriver
  let version: String
  let state: StateDirectory
  let configuration: ConfigurationInForce
  let chronicle: Chronicle
  let pressure: PressureMonitor
  let imageDisk: ImageDiskMonitor
  let cgroups: CgroupRoot?
  /// nil if no commands are run here.
  let hooks: HookRunner?

  /// How workers are suspended.
  var freezer: CodedText {
    cgroups == nil
      ? CodedText("sigstop", "SIGSTOP") : CodedText("cgroup_v2_freezer", "cgroup-v2 freezer")
  }

  func report(at now: Instant) -> DaemonReport {
    let engine = driver.state
    var report = DaemonReport(
      pid: getpid(), version: version, policy: engine.policy.name,
      mode: engine.policy.mode.rawValue, pressure: engine.pressure.name,
      budget: engine.budget.bytes, available: engine.available.bytes,
      budgetIsHost: engine.policy.memory == .host, freezer: freezer,
      stateDirectory: state.path)
    report.configuration = configuration.current.file
    if report.budgetIsHost { report.limitedBy = pressure.limitedBy }
    if let set = engine.setPressure, now < set.until {
      report.pressureSet = set.level.name
      report.pressureSetSeconds = (set.until - now) / .seconds(1)
    }
    let costs = imageDisk.costs
    report.writtenInDay = costs.bytes
    report.hibernatingSecondsInDay = Double(costs.milliseconds) / 1000
    report.imagesInDay = costs.images
    report.dailyWrites = engine.policy.hibernate.disk.dailyWrites.bytes
    report.shadow = ShadowReport(engine.shadowSummary)
    report.savings = chronicle.days.savings(at: now)
    return report
  }

  /// What the daemon measures about itself and about the machine.
  func measurements(at now: Instant) -> DaemonMeasurements {
    let (counts, engine) = (chronicle.counts, driver.state)
    var measured = DaemonMeasurements(upSeconds: counts.upSeconds(at: now))
    measured.cpuSeconds = Double(Clocks.processorTime) / 1e9
    // Without /proc the number isn't known.
    let bytes = residentMemory(of: CurrentProcess.pid).all
    measured.resident = bytes == 0 ? nil : Int64(clamping: bytes)
    let memory = engine.memoryReading
    measured.someStall = memory?.someStall
    measured.fullStall = memory?.fullStall
    measured.swapFree = memory?.swapFree.bytes
    if let disk = engine.imageDisk {
      measured.imageDisk = DaemonMeasurements.ImageDisk(
        images: disk.reading.images.bytes, budget: engine.policy.hibernate.disk.budget.bytes,
        free: disk.reading.free.bytes, total: disk.reading.total.bytes, least: disk.minFree.bytes)
    }
    measured.wakeTimes = counts.wakeTimes
    measured.jetsamReports = counts.jetsamReports
    measured.hooks = hooks?.report
    return measured
  }

  /// The facts about this daemon for `doctor`.
  ///
  /// - Parameter user: this process's effective user id.
  func context(user: UInt32, at now: Instant) -> DaemonContext {
    let engine = driver.state
    // Without /proc little works, and the checks report that.
    let status = try? ProcessStatus.ofThisProcess()
    return DaemonContext(
      pid: status?.threadGroup ?? 0, user: user, cgroup: cgroups?.path,
      capabilities: status?.capabilityNames ?? [], freezer: freezer,
      hibernation: engine.policy.permittedHibernation,
      hibernated: engine.snapshots(at: now).count { $0.state == .hibernated })
  }
}

extension LifecyclePolicy {
  /// Whether the daemon's policy hibernates workers. A worker's own policy may differ.
  var permittedHibernation: CodedText {
    if !hibernate.enabled {
      return CodedText("disabled", "the policy hibernates no worker (hibernate.enabled: false)")
    }
    if mode == .shadow {
      return CodedText("shadow_mode", "shadow mode: decisions are logged, not applied")
    }
    return CodedText("enabled", "the policy hibernates workers")
  }
}
