import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// What workers take, from the kernel. To add up a process's mappings can take it seconds, and waits while
// the process changes them: so that is done on threads of its own, and everything here goes by the last
// figures, or calls back.

/// What was found, and what it cost.
struct Measurement: Sendable {
  /// As `Footprint.footprint`, or roughly; bytes.
  var footprint: ByteCount
  /// File pages that the kernel may drop; bytes.
  var reclaimable: Int64 = 0
  /// What `sample` compares with: it measures again where this has changed since. Read before the
  /// measurement, so that a page that comes meanwhile shows as a change. Bytes.
  var anonymous: UInt64 = 0
  var at: Instant
  var took: Duration
  /// Why it isn't exact: what looking closely was refused with.
  var refusal: String?

  /// On a measuring thread. Where looking closely isn't permitted (setuid, PR_SET_DUMPABLE), what everybody
  /// may see: anonymous memory.
  ///
  /// - Parameter missing: what is still to come of a worker that was resumed a moment ago. Read first: a page
  ///   that comes meanwhile is counted twice rather than not at all.
  static func take(_ pids: [Int32], _ missing: MissingBytes? = nil) -> Measurement {
    let start = EventLoop.now
    let toCome = ByteCount(Int64(clamping: missing?.bytes ?? 0))
    let anonymous = pids.reduce(0) { $0 + Daemon.anonymousMemory(of: $1) }
    var footprint: ByteCount
    var reclaimable: Int64 = 0
    var refusal: String?
    do throws(FootprintError) {
      let found = try Footprint.measure(pids)
      (footprint, reclaimable) = (ByteCount(found.footprint) + toCome, found.reclaimable)
    } catch {
      refusal = "\(error)"
      footprint = ByteCount(Int64(clamping: anonymous))
    }
    let now = EventLoop.now
    return Measurement(
      footprint: footprint, reclaimable: reclaimable, anonymous: anonymous, at: now,
      took: now - start, refusal: refusal)
  }
}

/// When one worker may be measured again, and who waits for it. One look at a time; who asks while one is
/// under way gets the next, because what it wants to know may have happened since that one began.
struct MeasuringState {
  typealias Completion = (Measurement?) -> Void

  private(set) var last: Measurement?
  var isUnderWay: Bool { look != nil }
  /// Names the look that is under way. A new run begins with a new value of this type.
  private(set) var look: UInt64?
  private(set) var since = Instant.zero
  private var served: [Completion] = []
  private var waiting: [Completion] = []
  /// Regular looks come after this.
  private var nextLook = Instant.zero
  /// Bumped when its memory goes or comes back: a look from before says nothing then.
  private var epoch = 0
  private var lookEpoch = 0

  /// Of one processor, for all workers' regular looks together, percent.
  static let budget: Int64 = 10
  static let maxPause = Duration.seconds(60)

  func isDue(at now: Instant) -> Bool { !isUnderWay && now >= nextLook }

  /// True: a look must begin.
  mutating func ask(_ completion: @escaping Completion) -> Bool {
    waiting.append(completion)
    return !isUnderWay
  }

  /// - Parameter number: never given twice.
  mutating func begin(_ number: UInt64, at now: Instant) {
    look = number
    since = now
    lookEpoch = epoch
    served = waiting
    waiting = []
  }

  /// - Parameter workers: how many share the budget.
  /// - Returns: who is told, and what; and whether another look must begin.
  mutating func finish(
    _ measurement: Measurement?, workers: Int, at now: Instant
  ) -> (completions: [Completion], Measurement?, more: Bool) {
    defer { served = [] }
    look = nil
    let counts = lookEpoch == epoch
    if let measurement, counts {
      last = measurement
      let pause = measurement.took * Int(100 / Self.budget) * max(1, workers)
      nextLook = now + min(pause, Self.maxPause)
    }
    return (served, counts ? measurement : nil, !waiting.isEmpty)
  }

  /// It has taken too long: who waits does without. What is under way goes on.
  mutating func giveUp() -> [Completion] {
    defer {
      served = []
      waiting = []
    }
    return served + waiting
  }

  /// Its memory is moved to disk, or back.
  mutating func memoryMoves() { epoch += 1 }
}

extension Daemon {
  /// So long a look may take before what waits for it goes on without.
  private static let measuringPatience = Duration.seconds(3)

  func measure(_ id: WorkerID) {
    guard let runtime = workers[id] else { return }
    measure(runtime) { [unowned self] measurement in
      guard let measurement else { return }
      // A page that comes meanwhile is counted twice rather than not at all.
      let missing = ByteCount(Int64(clamping: runtime.missing?.bytes ?? 0))
      driver.send(.footprint(id, measurement.footprint + missing))
    }
  }

  /// At a sample: only as often as the budget allows.
  func measureWhenDue(_ runtime: WorkerRuntime) {
    guard runtime.measuring.isDue(at: EventLoop.now) else { return }
    measure(runtime.id)
  }

  /// Calls back on the loop with a figure that was taken after this call; `nil` where there is nothing to
  /// measure, or it takes too long, or the worker's memory was moved meanwhile.
  func measure(_ runtime: WorkerRuntime, then completion: @escaping (Measurement?) -> Void) {
    guard runtime.process != nil else { return completion(nil) }
    let process = runtime.process
    loop.after(Self.measuringPatience) { [unowned self] in
      giveUpMeasuring(runtime, process)
    }
    if runtime.measuring.ask(completion) { beginMeasuring(runtime) }
  }

  private func beginMeasuring(_ runtime: WorkerRuntime) {
    let id = runtime.id
    lookCount += 1
    let number = lookCount
    runtime.measuring.begin(number, at: EventLoop.now)
    guard let process = runtime.process else { return finishMeasuring(runtime, number, nil) }
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    measurers.submit(about: id.name) { [mailbox, missing = runtime.missing] in
      // Without a cgroup that is a look at all processes of the machine. nil: it has ended meanwhile.
      let pids = (try? ProcessTree.discover(root: root, session: session, cgroup: cgroup))?.pids
      let measurement = pids.map { Measurement.take($0, missing) }
      mailbox.post { daemon in
        if let runtime = daemon.workers[id] {
          daemon.finishMeasuring(runtime, number, measurement)
        }
      }
    }
  }

  private func finishMeasuring(
    _ runtime: WorkerRuntime, _ number: UInt64, _ measurement: Measurement?
  ) {
    // Of an earlier run, or of a worker that was forgotten since.
    guard runtime.measuring.look == number else { return }
    if let refusal = measurement?.refusal, !runtime.isMeasuredRoughly {
      runtime.isMeasuredRoughly = true
      log(.warning, "\(runtime.id): measured roughly: \(refusal)")
    }
    let running = workers.values.count { engine.state(of: $0.id)?.runs == true }
    let (completions, result, more) = runtime.measuring.finish(
      measurement, workers: running, at: EventLoop.now)
    if let result { runtime.sample.anonymous = result.anonymous }
    for completion in completions { completion(result) }
    if more, !runtime.measuring.isUnderWay { beginMeasuring(runtime) }
  }

  private func giveUpMeasuring(_ runtime: WorkerRuntime, _ process: WorkerProcess?) {
    guard runtime.process === process, runtime.measuring.isUnderWay,
      EventLoop.now - runtime.measuring.since >= Self.measuringPatience
    else { return }
    let completions = runtime.measuring.giveUp()
    for completion in completions { completion(nil) }
  }
}
