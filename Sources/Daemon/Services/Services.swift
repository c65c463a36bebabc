import Hibernation
import Linux
import Supervision

/// What every part of the daemon may use, made once and passed to them: the loop and its clock, the log, the
/// threads for work that may block, the workers' records.
struct Services {
  let log: DaemonLog
  let loop: EventLoop
  /// Brings outcomes back from the threads below.
  let loopReturn: LoopReturn
  /// For work that may wait for a file system: programs, logs.
  let jobs: LoopJobs
  /// For freezing, thawing and clearing: mostly microseconds, seconds where a thread hangs. Jobs about one
  /// worker run one after the other; a job that wakes a worker waits for no other worker's.
  let mechanics = JobPool(name: "dormouse-mech", most: 4, reserve: 4)
  /// Ends processes, until no new one is found.
  let killers = JobPool(name: "dormouse-kill", most: 4, reserve: 4)
  /// Measures memory; see `FootprintMeter`.
  let measurers = JobPool(name: "dormouse-meas", most: 2)
  /// Small files.
  let disk = DiskQueue()
  let stateFiles: StateFiles
  let socketFiles: SocketFiles
  let records: WorkerRecordKeeper
  let hibernation: HibernationService
  let processes: any Processes = KernelProcesses()

  /// - Parameter files: what may wait for a file system. A test that runs beside others has its own: jobs about
  ///   one subject refuse each other.
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
    stateFiles = StateFiles(loopReturn, disk)
    socketFiles = SocketFiles(jobs, files)
  }
}
