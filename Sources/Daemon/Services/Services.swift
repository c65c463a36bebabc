import Hibernation
import Linux

/// What every component of the daemon may use: the loop and its clock, the log, the threads for
/// work that may block, and the workers' records. It is made once, and passed to the components.
struct Services {
  let log: DaemonLog
  let loop: EventLoop
  /// Delivers outcomes from the threads below on the loop.
  let loopReturn: LoopReturn
  /// Runs work that may wait for a file system, such as opening programs and logs.
  let jobs: LoopJobs
  /// Freezes, thaws and removes cgroups: mostly microseconds, but seconds if a thread hangs. Jobs
  /// about one worker run one after the other; a job that wakes a worker waits for no job about
  /// another worker.
  let mechanics = JobPool(name: "dormouse-mech", maxOrdinary: 4, urgentReserve: 4)
  /// Ends processes, until no new one is found.
  let killers = JobPool(name: "dormouse-kill", maxOrdinary: 4, urgentReserve: 4)
  /// Measures memory; see `FootprintMeter`.
  let measurers = JobPool(name: "dormouse-meas", maxOrdinary: 2)
  /// Writes small files.
  let disk = WorkQueue(name: "dormouse-disk")
  let stateFiles: StateFiles
  let socketFiles: SocketFiles
  let records: WorkerRecordKeeper
  let hibernation: HibernationService
  /// Tests have a fake.
  var processes: any Processes = KernelProcesses()

  /// - Parameter files: the threads for work that may wait for a file system. A test that runs
  ///   beside other tests passes threads of its own: a job is refused while another one about the
  ///   same subject runs.
  init(
    log: DaemonLog, records: WorkerRecordKeeper, hibernation: HibernationService,
    files: JobPool = .files
  ) throws(SystemCallError) {
    self.log = log
    self.records = records
    self.hibernation = hibernation
    loop = try EventLoop()
    loopReturn = try LoopReturn(loop)
    records.loop = loopReturn
    jobs = try LoopJobs(loop, files)
    stateFiles = StateFiles(loop: loopReturn, disk: disk)
    socketFiles = SocketFiles(jobs, files)
  }
}
