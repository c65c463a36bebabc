import Hibernation
import Linux
import Supervision

/// What every part of the daemon may use, made once and handed in: the loop and its clock, the log, the
/// threads on which what may block is done, the workers' records.
struct Services {
  let log: DaemonLog
  let loop: EventLoop
  /// Brings outcomes back from the threads below.
  let loopReturn: LoopReturn
  /// What may wait for a file system: programs, logs.
  let jobs: LoopJobs
  /// Freezing, thawing and clearing away: mostly microseconds, seconds where a thread hangs. About one
  /// worker one after the other; what wakes one waits for no other.
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

  init(
    log: DaemonLog, records: WorkerRecordKeeper, hibernation: HibernationService
  ) throws(SystemCallError) {
    self.log = log
    self.records = records
    self.hibernation = hibernation
    loop = try EventLoop()
    loopReturn = try LoopReturn(loop)
    jobs = try LoopJobs(loop)
    stateFiles = StateFiles(loopReturn, disk)
    socketFiles = SocketFiles(jobs)
  }
}
