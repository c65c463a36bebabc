import Lifecycle
import Linux
import Policy

/// What one reading of a worker's processes shows.
private struct IdleSample {
  /// The processor time that they have used, in clock ticks.
  var timeUsed: UInt64
  /// No thread of the worker runs, or waits for a processor or a disk.
  var isIdle: Bool

  init(_ tree: ProcessTree) {
    timeUsed = tree.processes.reduce(0) { $0 &+ $1.cpuTicks }
    isIdle = !tree.isEmpty && tree.processes.allSatisfy { $0.state == .sleeping }
  }
}

/// Delays the answer to a start until it is known whether the worker keeps running.
///
/// A program that doesn't find its port, its file or its module ends soon after its launch, and "is
/// running" would be a wrong answer to the client that started it. A worker that has a readiness
/// condition has met it by then. Any other worker is observed until it is idle: none of its threads
/// wants a processor or waits for a disk, as in a server that waits for its first client. A worker
/// that continues to work counts as running after 1 s; one that has hardly got a processor in that
/// time, after 5 s. Belongs to the loop's thread.
struct StartConfirmation {
  private static let minTime = Duration.milliseconds(100)
  private static let maxTime = Duration.seconds(1)
  /// The limit for a worker that hardly gets a processor on a busy machine.
  private static let maxStarved = Duration.seconds(5)
  /// A worker that has used less processor time than this, in clock ticks, has hardly begun to run.
  private static let ticksToBegin: UInt64 = 10
  private static let interval = Duration.milliseconds(25)
  /// The timeout for one reading of the processes. Only a lost outcome takes longer.
  static let timeout = Duration.seconds(10)

  let requests: WorkerRequests
  let restarts: RestartSupervisor
  let scanner: ProcessScanner

  /// Passes on the answer to a start: at once, or when it is known whether the worker keeps
  /// running.
  func watch(_ id: WorkerID, _ answer: Answer, then respond: @escaping (Answer) -> Void) {
    guard let worker = restarts.workers[id] else { return respond(answer) }
    if answer.code == .failed {
      return respond(Answer(.failed, answer.text + restarts.lastOutput(of: id)))
    }
    guard answer.code == .done, worker.configuration.readiness == nil, requests.isAlive(id),
      age(of: id) < Self.maxStarved
    else { return respond(answer) }
    let isFirst = restarts.watch(id) { end in respond(end ?? answer) }
    if isFirst { sample(at: worker, idleSince: nil) }
  }

  private func age(of id: WorkerID) -> Duration {
    restarts.timers.now - restarts.launchedAt(of: id)
  }

  /// - Parameter idleTicks: the processor time that the worker had used if it was idle at the last
  ///   reading; nil: it wasn't idle.
  private func sample(at worker: WorkerUnit, idleSince idleTicks: UInt64?) {
    let id = worker.id
    // Another worker of the same name may have been started since.
    guard restarts.workers[id] === worker, restarts.isWatched(id) else { return }
    // The end of a worker that has exited will be reported soon, so it only has to be waited for.
    if worker.hasExited { return sampleLater(at: worker, idleSince: nil) }
    guard let process = worker.process else { return restarts.stays(id) }
    // A lost outcome counts as processes that can't be read.
    let operation = TimedOperation(restarts.timers)
    operation.begin(within: Self.timeout, orElse: nil) { complete in
      scanner.withTree(of: process) { complete($0.map(IdleSample.init)) }
    } then: { (sample: IdleSample?) in
      // The closure keeps the operation until here.
      withExtendedLifetime(operation) { didSample(sample, at: worker, idleSince: idleTicks) }
    }
  }

  private func didSample(
    _ sample: IdleSample?, at worker: WorkerUnit, idleSince idleTicks: UInt64?
  ) {
    let id = worker.id
    guard restarts.workers[id] === worker else { return }
    let isIdle = sample?.isIdle == true && sample?.timeUsed == idleTicks
    let used = sample?.isIdle == true ? sample?.timeUsed : nil
    // Processes that can't be read have ended meanwhile.
    let hasBegun = sample.map { $0.isIdle || $0.timeUsed >= Self.ticksToBegin } ?? true
    let limit = hasBegun ? Self.maxTime : Self.maxStarved
    let ran = age(of: id)
    let runs = restarts.driver.state.state(of: id)?.runs == true
    if !worker.hasExited, !runs || isIdle && ran >= Self.minTime || ran >= limit {
      return restarts.stays(id)
    }
    sampleLater(at: worker, idleSince: used)
  }

  private func sampleLater(at worker: WorkerUnit, idleSince used: UInt64?) {
    restarts.timers.after(Self.interval) { sample(at: worker, idleSince: used) }
  }
}
