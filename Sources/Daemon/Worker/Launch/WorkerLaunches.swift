import Lifecycle
import Linux
import Supervision

/// The components that take part in launches, and what is done with them. Belongs to the loop's
/// thread.
struct WorkerLaunches: LaunchHost {
  let services: Services
  /// The path of the daemon's control socket. The workers' channels are beside it.
  let socket: String
  /// The program of the daemon's caller; nil: the configuration declares the workers.
  let program: (any CallersProgram)?
  let recordWriter: WorkerRecordWriter
  let conversations: WorkerConversations
  let processes: ProcessHolder
  let ends: WorkerEnds

  var workers: WorkerRegistry { ends.workers }
  var listening: ListeningSockets { ends.listening }
  var planner: LaunchPlanner { ends.launchPlanner }

  func steps(ofLaunching id: WorkerID) -> (any LaunchSteps)? {
    workers[id].map { WorkerLaunch($0, self) }
  }

  /// Refuses a launch while a process runs that an earlier daemon has left and this one couldn't
  /// adopt. Two workers with one name would share an image, and each would destroy the memory of
  /// the other.
  func obstacle(toLaunching id: WorkerID) -> String? {
    guard let record = services.records.record(of: id.name),
      record.life(bootID: recordWriter.bootID) != .hasEnded
    else { return nil }
    return "its process from an earlier daemon still runs and can't be adopted: end it "
      + "with `kill -9 \(record.process.pid)`, or restart the daemon"
  }

  func programDidStart(_ id: WorkerID) {
    guard let worker = workers[id], let process = worker.process else { return }
    worker.recordLaunch()
    program?.didLaunch()
    // The record now contains what is known only after the launch.
    recordWriter.save(worker, state: .launching)
    services.log(.info, "\(id): launched as pid \(process.identity.pid)")
  }

  func didLaunch(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    ends.kernelKills.begin(worker)
    conversations.startWatchdog(of: worker)
    ends.supervision.starter.advance()
    worker.readiness?.begin()
  }

  func launchDidFail(_ id: WorkerID) {
    if let worker = workers[id] { ends.didEnd(worker) }
  }

  func log(_ id: WorkerID, _ text: String) {
    services.log(.warning, "\(id): \(text)")
  }
}
