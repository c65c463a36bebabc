import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The components that take part in launches. Belongs to the loop's thread.
struct WorkerLaunches {
  let services: Services
  let recordWriter: WorkerRecordWriter
  let conversations: WorkerConversations
  let processes: ProcessHolder
  let ends: WorkerEnds

  var workers: WorkerRegistry { ends.workers }
  var planner: LaunchPlanner { ends.launchPlanner }
}

/// Performs the steps of one launch of one worker, for `WorkerLauncher`. Work that may wait for
/// a name service, a file system or a cgroup is done on other threads.
final class WorkerLaunch: Launch {
  private let launches: WorkerLaunches
  private let worker: WorkerUnit
  private var account: Account?
  /// The worker's cgroup, as soon as it has been created.
  private var cgroup: WorkerCgroup?
  private var forked: ForkedWorker?
  private let start: StartWatch
  private var isUndone = false
  private var isRecorded = false
  /// A program waits at most this long for its record: the state directory may not respond.
  private static let recordTimeout = Duration.seconds(1)

  private var services: Services { launches.services }
  private var id: WorkerID { worker.id }

  init(_ worker: WorkerUnit, _ launches: WorkerLaunches) {
    self.worker = worker
    self.launches = launches
    start = StartWatch(launches.services.loop)
  }

  /// Refuses a launch while a process runs that an earlier daemon has left and this one couldn't
  /// adopt. Two workers with one name would share an image, and each would destroy the memory of
  /// the other.
  var obstacle: String? {
    guard let record = services.records.record(of: id.name),
      record.life(bootID: launches.recordWriter.bootID) != .hasEnded
    else { return nil }
    return "its process from an earlier daemon still runs and can't be adopted: end it "
      + "with `kill -9 \(record.process.pid)`, or restart the daemon"
  }

  /// A wrapped program inherits its files, has its caller's environment, and has no channel to the
  /// daemon.
  var steps: [LaunchStep] {
    launches.ends.program == nil ? LaunchStep.allCases : [.terms, .fork, .program]
  }

  var isWanted: Bool { launches.workers[id] === worker }
  var pid: Int32? { start.pid }

  func perform(
    _ step: LaunchStep, within limit: Duration, then: @escaping (String?) -> Void
  ) {
    switch step {
    case .terms: lookUp(within: limit, then)
    case .sockets: launches.ends.listening.openFiles(of: worker, as: account, then: then)
    case .channels: openChannels(within: limit, then)
    case .fork: fork(within: limit, then)
    case .program: executeProgram(within: limit, then)
    }
  }

  // MARK: steps

  /// Looks up the user, and creates the cgroup. The name service, /proc, the worker's record and a
  /// change of the cgroup tree may take long.
  private func lookUp(within limit: Duration, _ then: @escaping (String?) -> Void) {
    let query = launches.planner.query(of: worker)
    services.jobs.run(about: "terms of \(id)", within: limit, query.perform) { [self] outcome in
      switch outcome {
      case .done(.success(let terms)):
        account = terms.account
        cgroup = terms.cgroup
        if isUndone { return remove(terms.cgroup) }
        if let refusal = terms.cgroupRefusal {
          log(.warning, "no cgroup of its own: \(refusal)")
        }
        if let limit = worker.configuration.limits.memory {
          launches.planner.warnOfMemoryLimit(
            id, limit: limit, cgroup: terms.cgroup, error: terms.limitRefusal)
        }
        then(nil)
      case .done(.failure(let refusal)): then(refusal.text)
      case .overdue: then(query.wanted.timeoutText(limit))
      case .busy: then(query.wanted.stillWaitingText)
      }
    }
  }

  private func openChannels(within limit: Duration, _ then: @escaping (String?) -> Void) {
    let configuration = worker.configuration
    let socket = launches.planner.socket
    let directory = ChannelPlan.directory(of: socket)
    let plan = ChannelPlan(
      name: id.name, directory: directory,
      publicDirectory: ChannelPlan.publicDirectory(of: socket),
      hasNotifySocket: configuration.hasNotifySocket,
      acceptsDescriptors: configuration.fdstore > 0, account: account)
    services.socketFiles.open(plan, within: limit) { [self] outcome in
      switch outcome {
      case .done(.success(let made)): then(use(made, plan))
      case .done(.failure(let refusal)): then(refusal.text)
      case .overdue, .busy:
        then(
          "can't create its sockets to the daemon within "
            + "\(limit.text) in \(directory): check that file system")
      }
    }
  }

  /// Listens to the channels. Returns the reason if it can't.
  private func use(_ made: ChannelPlan.Made, _ plan: ChannelPlan) -> String? {
    if isUndone {
      for path in plan.paths { services.socketFiles.remove(path) }
      return nil
    }
    for remark in made.remarks { log(remark.level, remark.text) }
    launches.conversations.makeConversation(worker, over: made.claim() ?? WorkerChannels())
    return failureText {
      try worker.conversation?.listen()
      try worker.conversation?.listenToConnections()
    }
  }

  /// Forks the worker's process on another thread. The program and the log may be in a file system
  /// that doesn't respond, and a fork into a cgroup waits for every change of any cgroup on the
  /// machine.
  private func fork(within limit: Duration, _ then: @escaping (String?) -> Void) {
    let plan: LaunchPlan
    do {
      let listeners = try launches.ends.listening.listeners(for: worker, as: account)
      plan = try launches.planner.plan(
        for: worker, as: account, in: cgroup, listeners: listeners)
    } catch { return then("\(error)") }
    services.jobs.run(about: "launch of \(id)", within: limit) {
      Result { () throws(LaunchError) in try plan.prepare().fork() }
    } then: { [self] outcome in
      switch outcome {
      case .done(.success(let forked)):
        // A child that is dropped is killed.
        if !isUndone { self.forked = forked }
        then(nil)
      case .done(.failure(let error)): then(error.reason)
      case .overdue:
        then(
          "can't open its program and log within \(limit.components.seconds) s: check their "
            + "file system")
      case .busy: then("an earlier launch still waits for the file system of its program or log")
      }
    }
  }

  private func executeProgram(within limit: Duration, _ then: @escaping (String?) -> Void) {
    guard let forked else { return then("can't fork its process") }
    self.forked = nil
    // The record is written before the program runs: a daemon that ends now must leave either a
    // worker that the next daemon finds, or no worker.
    isRecorded = true
    launches.recordWriter.save(worker, launching: forked) { forked.release() }
    let timer = services.loop.after(Self.recordTimeout) { forked.release() }
    start.begin(WorkerStart(forked), within: limit) { [self] outcome in
      services.loop.cancel(timer)
      switch outcome {
      case .success(let process): then(failureText { try attach(process) })
      case .failure(let error): then(error.reason)
      }
    }
  }

  private func attach(_ process: WorkerProcess) throws {
    if let refusal = process.cgroupRefusal {
      log(.warning, "runs outside its cgroup: \(refusal)")
      remove(process.plan.cgroup)
    }
    try launches.processes.attach(process, to: worker)
  }

  // MARK: undoing

  func undo(then: @escaping () -> Void) {
    isUndone = true
    forked = nil
    start.abandon()
    if isRecorded { services.records.remove(id.name) }
    // The worker may run already, and nothing watches for its end.
    let killing = worker.process?.killing
    launches.ends.cleanUp(worker)
    guard cgroup != nil || killing != nil else { return then() }
    let done = services.loopReturn.callback { [self] (failure: String?) in
      if let failure { log(.warning, "can't kill all of its processes: \(failure)") }
      then()
    }
    // `then` is called only when the cgroup can be used again. A child that hangs in a file system
    // can't be removed.
    services.mechanics.submit(about: id.name) { [cgroup] in
      let failure = failureText {
        try killing?.perform(until: Deadline(in: .seconds(5)))
        try cgroup?.kill()
      }
      // The next launch detects what stays behind (`Leftovers`).
      try? cgroup?.remove(until: Deadline(in: .seconds(1)))
      done(failure)
    }
  }

  /// An empty cgroup may stay behind, which the next launch uses.
  private func remove(_ unused: WorkerCgroup?) {
    services.mechanics.submit(about: id.name) { try? unused?.remove(until: Deadline(in: .zero)) }
  }

  // MARK: outcome

  func programDidStart() {
    guard let process = worker.process else { return }
    worker.recordLaunch()
    launches.ends.program?.didLaunch()
    // The record now contains what is known only after the launch.
    launches.recordWriter.save(worker, state: .launching)
    log(.info, "launched as pid \(process.identity.pid)")
  }

  func didLaunch() {
    guard isWanted else { return }
    launches.ends.kernelKills.begin(worker)
    launches.conversations.startWatchdog(of: worker)
    launches.ends.supervision.starter.advance()
    worker.readiness?.begin()
  }

  func didFail() {
    // Another worker may have the name by now. Its sockets wait for the end of this launch.
    if let worker = launches.workers[id] { launches.ends.didEnd(worker) }
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    services.log(priority, "\(id): \(text)")
  }
}
