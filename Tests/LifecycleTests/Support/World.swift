import Lifecycle
import Policy

/// An engine with a clock, and a daemon that can perform everything at once. It is for tests that
/// are a sequence of events.
struct World {
  var engine: Engine
  var now = Instant.zero
  var requests: Request.ID = 0
  /// The next measurement of each worker.
  var sizes: [WorkerID: ByteCount] = [:]
  var locks: [WorkerID: Int] = [:]
  var answers: [Request.ID: [Answer]] = [:]

  /// A world without workers.
  ///
  /// - Parameter terminateAfter: `pressure.terminate_after`. Most tests are about a shortage that
  ///   has lasted.
  init(_ policy: LifecyclePolicy = LifecyclePolicy(), terminateAfter: Duration = .zero) {
    var policy = policy
    policy.pressure.terminateAfter = terminateAfter
    engine = Engine(policy: policy)
  }

  /// A world without workers, with a policy that differs from the standard policy.
  init(terminateAfter: Duration = .zero, _ change: (inout LifecyclePolicy) -> Void) {
    var policy = LifecyclePolicy()
    change(&policy)
    self.init(policy, terminateAfter: terminateAfter)
  }

  /// Adds a worker, and brings it to a state.
  mutating func add(
    _ worker: WorkerID, size: ByteCount = .megabytes(8), policy: LifecyclePolicy? = nil,
    importance: Int = 0, canShed: Bool = false, canAnswer: Bool = false,
    announcesReadiness: Bool = false, in state: WorkerState = .terminated
  ) {
    sizes[worker] = size
    send(
      .added(
        worker,
        WorkerProfile(
          policy: policy ?? engine.policy, importance: importance, canShed: canShed,
          canAnswer: canAnswer, announcesReadiness: announcesReadiness)))
    bring(worker, to: state)
  }

  /// Adds a worker that runs already: an earlier daemon's, or another engine's.
  @discardableResult
  mutating func adopt(
    _ worker: WorkerID, in state: WorkerState, _ change: (inout WorkerProfile) -> Void = { _ in }
  ) -> [Directive] {
    var profile = WorkerProfile(policy: engine.policy)
    change(&profile)
    return send(.adopted(worker, profile, state))
  }

  mutating func changeProfile(of worker: WorkerID, _ change: (inout WorkerProfile) -> Void) {
    guard var profile = engine.profile(of: worker) else { return }
    change(&profile)
    send(.profileChanged(worker, profile))
  }

  @discardableResult
  mutating func send(_ event: Event) -> [Directive] {
    let directives = engine.handle(event, at: now)
    for case .answer(let request, let answer) in directives {
      answers[request, default: []].append(answer)
    }
    // Checks for file locks are answered here, so that other tests needn't do it.
    var others: [Directive] = []
    for directive in directives {
      if case .checkSafePoint(let worker) = directive {
        others += send(.fileLocks(worker, held: locks[worker] ?? 0))
      } else {
        others.append(directive)
      }
    }
    return others
  }

  @discardableResult
  mutating func ask(_ verb: Request.Verb, _ worker: WorkerID) -> [Directive] {
    requests += 1
    return send(.request(Request(id: requests, verb: verb, worker: worker)))
  }

  /// Lets time pass, deadline by deadline. Returns the directives, which aren't performed.
  @discardableResult
  mutating func pass(_ time: Duration) -> [Directive] {
    let end = now + time
    var all: [Directive] = []
    while let next = engine.nextDeadline, next <= end {
      now = next
      all += send(.deadline)
    }
    now = end
    return all
  }

  /// Lets time pass with a daemon that performs everything at once.
  @discardableResult
  mutating func live(_ time: Duration) -> [Directive] {
    let end = now + time
    var all: [Directive] = []
    while let next = engine.nextDeadline, next <= end {
      now = next
      all += obey(send(.deadline))
    }
    now = end
    return all
  }

  /// Performs directives, and those that follow, without delays or failures.
  @discardableResult
  mutating func obey(_ directives: [Directive]) -> [Directive] {
    var all = directives
    var next = 0
    while next < all.count {
      for event in outcomes(of: all[next]) { all += send(event) }
      next += 1
    }
    return all
  }

  private func outcomes(of directive: Directive) -> [Event] {
    switch directive {
    case .launch(let worker): [.launched(worker), .ready(worker)]
    case .shed(let worker, _, _): [.shedAnswered(worker)]
    case .finishShed(let worker):
      [.shedFinished(worker, before: size(worker), after: size(worker))]
    case .checkSafePoint(let worker): [.fileLocks(worker, held: locks[worker] ?? 0)]
    case .suspend(let worker): [.suspended(worker)]
    case .hibernate(let worker): [.hibernated(worker, hibernation(worker))]
    case .resume(let worker): [.resumed(worker, .milliseconds(20))]
    case .terminate(let worker): [.exited(worker, .exited(0))]
    case .kill(let worker): [.exited(worker, .signaled(9))]
    case .abort(let worker): [.exited(worker, .signaled(6))]
    case .checkWatchdog(let worker): [.watchdogSeen(worker, at: now)]
    case .purge(let worker): [.purged(worker, freed: .megabytes(1))]
    case .trim(let worker): [.trimmed(worker, trim(worker))]
    case .fill(let worker): [.filled(worker, swapped: .zero)]
    case .measure(let worker):
      state(worker) == .hibernated ? [] : [.footprint(worker, size(worker))]
    case .inspect(let worker): [.found(worker, .underWay)]
    case .expireTask(let worker, let task): [.taskEnded(worker, task: task)]
    case .answer, .transition, .pressureChanged, .report, .wouldHave, .watchdogMissed,
      .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
      .protectedLeft, .terminatesNone:
      []
    }
  }

  /// A trim that moves nine tenths of the worker's memory.
  func trim(_ worker: WorkerID) -> TrimResult {
    let moved = ByteCount(size(worker).bytes / 10 * 9)
    return TrimResult(
      residentBefore: size(worker), residentAfter: size(worker) - moved, swapped: moved,
      duration: .milliseconds(40))
  }

  func size(_ worker: WorkerID) -> ByteCount { sizes[worker] ?? .zero }

  func hibernation(_ worker: WorkerID) -> HibernationResult {
    HibernationResult(
      footprintBefore: size(worker), footprintAfter: .kilobytes(4),
      imageSize: ByteCount(size(worker).bytes / 5), duration: .milliseconds(48))
  }

  func state(_ worker: WorkerID) -> WorkerState? { engine.state(of: worker) }
  func verdict(_ worker: WorkerID) -> String? {
    engine.snapshot(of: worker, at: now)?.hibernationVerdict?.sentence
  }

  /// Brings a worker to a state. If the state is a transition, the request that caused it is still
  /// open.
  mutating func bring(_ worker: WorkerID, to state: WorkerState) {
    switch state {
    case .terminated: break
    case .launching: ask(.start, worker)
    case .foreground: obey(ask(.start, worker))
    case .background:
      bring(worker, to: .foreground)
      obey(ask(.background, worker))
    case .suspending:
      bring(worker, to: .background)
      ask(.suspend, worker)
    case .suspended:
      bring(worker, to: .background)
      obey(ask(.suspend, worker))
    case .hibernating:
      bring(worker, to: .suspended)
      ask(.hibernate, worker)
    case .hibernated:
      bring(worker, to: .suspended)
      obey(ask(.hibernate, worker))
    case .resuming:
      bring(worker, to: .hibernated)
      ask(.wake, worker)
    case .terminating:
      bring(worker, to: .background)
      ask(.terminate, worker)
    }
  }

  /// The world of the next daemon, which has what this one's engine has learned, and no workers.
  func successor() -> World {
    var next = self
    next.engine = Engine(policy: engine.policy, remembering: engine.learned)
    return next
  }

  /// Sends a reading of a host with 1,000 MB.
  @discardableResult
  mutating func read(
    available: Int64, some: Double? = nil, full: Double? = nil, swapFree: Int64 = 0
  ) -> [Directive] {
    send(
      .memory(
        MemoryReading(
          total: .megabytes(1000), available: .megabytes(available), someStall: some,
          fullStall: full, swapFree: .megabytes(swapFree))))
  }
}

extension Directive {
  /// The directive in a short form, for tables.
  var brief: String {
    switch self {
    case .launch(let worker): "launch \(worker)"
    case .shed(let worker, let kind, _): "shed \(worker) \(kind.rawValue)"
    case .finishShed(let worker): "finishShed \(worker)"
    case .expireTask(let worker, let task): "expire \(worker) \(task)"
    case .checkSafePoint(let worker): "check \(worker)"
    case .purge(let worker): "purge \(worker)"
    case .trim(let worker): "trim \(worker)"
    case .fill(let worker): "fill \(worker)"
    case .suspend(let worker): "suspend \(worker)"
    case .hibernate(let worker): "hibernate \(worker)"
    case .resume(let worker): "resume \(worker)"
    case .terminate(let worker): "terminate \(worker)"
    case .kill(let worker): "kill \(worker)"
    case .abort(let worker): "abort \(worker)"
    case .checkWatchdog(let worker): "check watchdog \(worker)"
    case .measure(let worker): "measure \(worker)"
    case .inspect(let worker): "inspect \(worker)"
    case .answer(_, let answer): "\(answer.code)"
    case .transition(let step): "\(step.worker): \(step.from) → \(step.to)"
    case .pressureChanged(let from, let to, _): "pressure \(from) → \(to)"
    case .watchdogMissed(let worker, _): "missed \(worker)"
    case .report: "report"
    case .wouldHave(let worker, _): "wouldHave \(worker)"
    case .willTerminate(let worker, _): "notice \(worker)"
    case .willNotTerminate(let worker, _): "withdrawn \(worker)"
    case .overLimit(let worker, let excess, _): "over \(excess.step.rawValue) \(worker)"
    case .leakSuspected(let worker, _): "leak \(worker)"
    case .protectedLeft(let workers, let level): "left \(workers.map(\.name)) at \(level.name)"
    case .terminatesNone(let vain): "none at \(vain.level.name): \(vain.reason.rawValue)"
    }
  }
}

extension [Directive] {
  var brief: [String] { map(\.brief) }
  /// The directives to perform and the answers, without directives that only report.
  var deeds: [String] {
    filter { directive in
      switch directive {
      case .transition, .measure, .pressureChanged, .report, .wouldHave, .watchdogMissed,
        .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
        .protectedLeft, .terminatesNone:
        false
      default: true
      }
    }.map(\.brief)
  }
  var jetsamReports: [JetsamReport] {
    compactMap { if case .report(let report) = $0 { report } else { nil } }
  }

  var victims: [String] {
    compactMap { directive in
      guard case .transition(let step) = directive, step.to == .terminating,
        case .pressure = step.cause
      else { return nil }
      return step.worker.name
    }
  }
}

let web = WorkerID("web")
let mail = WorkerID("mail")
let maps = WorkerID("maps")
