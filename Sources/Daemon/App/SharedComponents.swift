import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What all components of a daemon share: its settings, the machine, the registry of workers, the
/// engine, and the components that need no others. It is made once, and passed to what makes
/// further components from it.
struct SharedComponents {
  let role: DaemonRole
  let configuration: ConfigurationInForce
  let socket: String
  /// The environment that workers inherit.
  let environment: [String: String]
  let version: String
  /// Reads the configuration again.
  let read: @Sendable () -> ParseResult<DaemonConfiguration>
  let state: StateDirectory
  let cgroups: CgroupRoot?
  /// The cgroup in which an earlier version of Dormouse kept the workers of this state directory;
  /// nil: it doesn't exist.
  let earlierCgroups: CgroupRoot?
  /// The reason for which the memory of workers can't be limited, in addition to the kernel's
  /// reason.
  let limitsObstacle: DelegatedGroup.Obstacle?
  let bootID: String

  let services: Services
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let phase = DaemonPhase()
  let returning = ReturningWorkers()
  let requests: WorkerRequests
  let recordWriter: WorkerRecordWriter
  let jetsam: JetsamKeeper
  let snapshots: SnapshotKeeper
  let chronicle: Chronicle
  let learnedMemory: LearnedMemoryKeeper
  let pressure: PressureMonitor
  let control: ControlServer
  let restarts: RestartSupervisor
  /// Starts workers when their dependencies have reached the required states.
  let starter: DependencyStarter

  init(_ settings: DaemonSettings, _ role: DaemonRole) throws(StartError) {
    self.role = role
    configuration = ConfigurationInForce(settings.configuration)
    socket = settings.socket
    environment = settings.environment
    version = settings.version
    read = settings.reload
    let log = role.log
    // The path is checked before anything is created that would have to be removed again.
    try ControlListener.check(path: settings.socket)
    state = try StateDirectory(path: settings.stateDirectory)
    do throws(SystemCallError) { bootID = try BootMark.current() } catch {
      throw .system(error)
    }
    let records: WorkerRecordKeeper
    do throws(WorkerRecordError) {
      records = try WorkerRecordKeeper(directory: state.workers)
    } catch { throw .records(error) }
    var features = DaemonProcess.kernelFeatures()
    if !role.hasSuccessor { features.permitsTracing = false }
    do throws(SystemCallError) {
      services = try Services(
        log: log, records: records,
        hibernation: HibernationService(features: features, separatesWorkers: true))
    } catch { throw .system(error) }
    control = ControlServer(path: settings.socket, services.loop, log)
    jetsam = JetsamKeeper(
      directory: state.jetsam, disk: services.disk, loop: services.loopReturn, log: log)
    snapshots = SnapshotKeeper(
      directory: state.snapshots, disk: services.disk, loop: services.loopReturn, log: log)
    learnedMemory = LearnedMemoryKeeper(
      path: role.hasSuccessor ? state.path + "/memory" : nil, services)
    driver = EngineDriver(
      Engine(policy: settings.configuration.policy, remembering: learnedMemory.consumeLearned()),
      clock: services.loop,
      replies: RequestReplies(records, timers: services.loop))
    requests = WorkerRequests(driver: driver, returning: returning)
    restarts = RestartSupervisor(
      timers: services.loop, stoppedFile: state.path + "/stopped", files: services.stateFiles,
      phase: phase, driver: driver, workers: workers, log: log)
    starter = DependencyStarter(restarts: restarts, requests: requests)
    restarts.connect(starter)
    recordWriter = WorkerRecordWriter(
      records: records, bootID: bootID, log: log, images: ImageDirectory(of: state.image(of: "")))
    chronicle = try Chronicle(
      settings.configuration.journal, version: version, directory: state.journal,
      reports: state.reports, log: { log($0, $1) })
    limitsObstacle = role.leavesCgroup ? DelegatedGroup.leave() : nil
    // Every daemon of this state directory uses the same cgroup, so that the next daemon finds it.
    earlierCgroups = CgroupRoot.findEarlier(forStateDirectory: settings.stateDirectory)
    cgroups = role.cgroups(of: settings.stateDirectory, limitsObstacle: limitsObstacle)
    pressure = PressureMonitor(
      services.loop, .kernel(workers: cgroups?.path), send: { [driver] in driver.send($0) },
      log: { log($0, $1) })
    learnedMemory.connect(driver, workers) { [restarts] in restarts.histories[$0]?.exits }
  }
}
