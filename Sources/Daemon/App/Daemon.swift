import CLinux
import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The shell around the engine: it turns signals, messages and timers into events, and carries out
/// the engine's directives. It makes its components in an order in which each one gets those that
/// it needs. No component knows the daemon.
///
/// All of its methods run on the main thread, which runs the event loop and must never wait. What
/// may take long runs on other threads (docs/ARCHITECTURE.md), and its outcome comes back as a
/// message.
public final class Daemon {
  let shared: SharedComponents
  let components: WorkerComponents
  private let runs: RunComponents
  private let survivors: SurvivorAdoption
  private let hooks: HookRunner
  private let orphans: OrphanReaper
  private let pendingSignals: PendingSignals
  let control: ControlService
  private let ending: DaemonEnd
  private let signals: DaemonSignals

  /// Makes the components and locks the state directory. Nothing is started yet.
  public convenience init(_ settings: DaemonSettings) throws(StartError) {
    clinux_keep_heap_small(4)
    try self.init(settings, .daemon())
  }

  package init(_ settings: DaemonSettings, _ role: DaemonRole) throws(StartError) {
    shared = try SharedComponents(settings, role)
    components = WorkerComponents(shared)
    runs = RunComponents(shared, components)
    let (services, driver, workers) = (shared.services, shared.driver, shared.workers)
    let (loop, senses) = (services.loop, components.senses)
    hooks = HookRunner(
      services, shared.chronicle, from: shared.configuration, workers: workers,
      environment: shared.environment)
    orphans = OrphanReaper(
      timers: loop, processes: services.processes, workers: workers,
      launcher: runs.launcher, senses: senses, hooks: hooks)
    pendingSignals = PendingSignals(timers: loop, driver: driver, workers: workers)
    survivors = SurvivorAdoption(
      timers: loop, recordWriter: shared.recordWriter, processes: services.processes,
      configuration: shared.configuration, declared: components.declared,
      conversations: components.conversations, ends: runs.ends, holder: runs.processes)
    ending = DaemonEnd(externals: runs.externals, control: shared.control)
    let reloader = ConfigurationReloader(
      configuration: shared.configuration, declared: components.declared,
      supervision: components.supervision, hibernation: services.hibernation,
      pressure: shared.pressure, schedules: components.schedules, encryption: senses.encryption,
      rules: runs.rules, hooks: hooks,
      read: ConfigurationReloader.reader(services.jobs, shared.read))
    control = ControlService(
      shared, components, runs: runs, ending: ending, reloader: reloader, hooks: hooks)
    signals = DaemonSignals(services, orphans: orphans, reloader: reloader, ending: ending)
    connectEngine(role)
  }

  private func connectEngine(_ role: DaemonRole) {
    let (services, driver, workers) = (shared.services, shared.driver, shared.workers)
    let sheds = WorkerSheds(
      loop: services.loop, processes: services.processes, driver: driver, workers: workers,
      meter: components.senses.meter, scanner: components.senses.scanner,
      liveness: components.senses.liveness, log: services.log)
    let directives = DirectiveExecution(
      services: services, launcher: runs.launcher, sheds: sheds,
      conversations: components.conversations, senses: components.senses, sleeps: runs.sleeps,
      jetsam: shared.jetsam, pressure: shared.pressure, ending: ending, externals: runs.externals,
      program: role.program)
    driver.connect(
      [shared.chronicle, runs.launcher], carryOut: directives.execute,
      whenQuiet: ending.engineDidBecomeQuiet)
    FillReports.follow(services.hibernation, loopReturn: services.loopReturn, log: services.log) {
      [unowned self] in
      components.senses.meter.measureSoon($0)
    } lose: { [unowned self] in
      shared.workers[$0]?.sleep?.didLoseTrim($1)
    }
  }

  // Reference cycles: a worker's run holds components, which hold the registry. The closures and
  // observers that are connected to the driver hold the driver.
  deinit {
    shared.control.close()
    shared.workers.removeAll()
    driver.connect([])
  }

  /// Runs the event loop on the calling thread until a signal or a request ends the daemon. Call it
  /// once.
  public func run() throws(StartError) {
    defer { shared.state.unlock(after: shared.services) }
    // The kernel doesn't remove a cgroup that still has workers in it.
    defer {
      shared.cgroups?.remove()
      shared.earlierCgroups?.remove()
    }
    DaemonProcess.protect(services.log)
    do throws(SystemCallError) { try signals.follow() } catch { throw .system(error) }
    try shared.control.open(control)
    shared.pressure.follow(driver.state.policy)
    shared.chronicle.begin(driver.state, at: EventLoop.now, phase: shared.phase)
    begin()
    do throws(SystemCallError) {
      while !ending.hasEnded {
        try services.loop.turn(until: driver.nextDeadline)
        driver.passDeadlines()
      }
    } catch { throw .system(error) }
    finish()
  }

  /// Takes over the workers of an earlier daemon, and starts the others.
  private func begin() {
    let configured = shared.configuration.current
    for worker in configured.workers { components.declared.addDeclared(worker) }
    hooks.begin(version: shared.version, socket: shared.socket)
    components.senses.encryption.tryEncryption(for: configured)
    survivors.adoptSurvivors()
    components.listening.openListeners(of: configured.workers) { [unowned self] in
      if !shared.phase.isClosing { components.declared.startWorkers(configured.workers) }
    }
    // From here on each worker has its own configuration.
    shared.configuration.current.workers = []
    components.schedules.follow()
    runs.rules.follow(configured.adoption)
    let count = counted(shared.workers.count, "worker")
    let freezer = control.status.daemon.freezer.text
    services.log(.info, "ready: \(count), policy \(driver.state.policy.name), \(freezer)")
    components.senses.sampling.sampleRegularly()
    StartupMemory.releaseAfterStart(services.loop) { [driver, workers = shared.workers] in
      Dictionary(
        uniqueKeysWithValues: workers.keys.map { ($0, driver.state.state(of: $0) ?? .terminated) })
    } finish: { [learned = shared.learnedMemory] in
      learned.save()
    } release: {
      clinux_release_unused_stack()
      SelfMemory.releaseUnusedSoon(code: true)
    }
    pendingSignals.follow()
    ServiceManager.send("READY=1")
  }

  /// Saves what is still in memory, and closes what clients use. The event loop has ended.
  private func finish() {
    ServiceManager.send("STOPPING=1")
    // No client is served from here on, so the daemon may wait for the disk.
    shared.chronicle.close(at: EventLoop.now)
    shared.learnedMemory.save()
    services.records.drain()
    let diskAnswers = services.disk.drain()
    services.socketFiles.drain(within: .seconds(2))
    shared.control.close()
    discardDirectory(ChannelPlan.directory(of: shared.socket))
    if geteuid() == 0 { discardDirectory(ChannelPlan.publicDirectory(of: shared.socket)) }
    // A worker that was left asleep needs the key of its image.
    if diskAnswers, !shared.state.mayHaveImages(of: services.records.all) {
      BootKey.discard(in: shared.state.images)
    }
  }

  /// - Parameter id: the only worker, which is the program of the daemon's caller.
  package func programRun(of id: WorkerID) -> ProgramRun {
    ProgramRun(
      id: id, shared: shared, components: components, control: control, orphans: orphans,
      ending: ending)
  }

  private var services: Services { shared.services }
  private var driver: EngineDriver { shared.driver }
}
