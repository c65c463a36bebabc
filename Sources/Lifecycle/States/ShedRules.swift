import Policy

// A worker has one shed request at a time: asked → (answer or deadline) → finishing → measured.

struct ShedInFlight: Codable, Sendable, Equatable {
  var kind: Directive.ShedKind
  var askedAt: Instant
  var deadline: ExtensibleDeadline
  var isAnswered = false
  /// `finishShed` was emitted.
  var isFinishing = false
  var finishBy: Instant?

  /// The longest wait for the outcome of `finishShed`: a measurement that fails mustn't keep a
  /// worker awake forever.
  static let timeout = Duration.seconds(10)
}

extension Engine {
  mutating func advanceShed(_ index: Int) {
    let state = workers[index].state
    guard state == .foreground || state == .background, workers[index].isShedding else { return }
    let worker = workers[index]
    if let shed = worker.run.shed {
      if !shed.isFinishing, now >= shed.deadline.until { finishShed(index) }
      if let finishBy = shed.finishBy, now >= finishBy {
        recordShedFinished(index, before: worker.footprint, after: worker.footprint)
      }
    } else if worker.run.owesBackgroundShed {
      workers[index].run.owesBackgroundShed = false
      ask(index, .didEnterBackground)
    } else if worker.run.owesWarning {
      workers[index].run.owesWarning = false
      ask(index, .memoryWarning)
    }
  }

  private mutating func ask(_ index: Int, _ kind: Directive.ShedKind) {
    let until = now + workers[index].policy.background.shedDeadline
    workers[index].run.shed = ShedInFlight(
      kind: kind, askedAt: now, deadline: ExtensibleDeadline(until))
    startAnswerWatchdog(index, kind)
    emit(.shed(workers[index].id, kind, until: until))
  }

  private mutating func finishShed(_ index: Int) {
    workers[index].run.shed?.isFinishing = true
    workers[index].run.shed?.finishBy = now + ShedInFlight.timeout
    emit(.finishShed(workers[index].id))
  }

  /// Records an answer. An answer after the deadline belongs to a request that is being finished,
  /// and doesn't count.
  mutating func recordShedAnswered(_ index: Int) {
    // The watchdog accepts a late answer: it needs a sign of life.
    workers[index].run.unanswered = nil
    guard let shed = workers[index].run.shed, !shed.isFinishing else { return }
    workers[index].run.shed?.isAnswered = true
    finishShed(index)
  }

  mutating func recordShedFinished(_ index: Int, before: ByteCount, after: ByteCount) {
    recordFootprint(index, after)
    guard let shed = workers[index].run.shed, shed.isFinishing else { return }
    workers[index].run.shed = nil
    decisions += 1
    workers[index].lastShed = ShedRecord(
      kind: shed.kind, at: now, before: before, after: after, answered: shed.isAnswered)
    learnYield(index, of: shed, freed: before - after)
    guard shed.kind == .memoryWarning else { return }
    recordLeft(byWarning: after, index)
    let text = workers[index].lastShed?.sentence ?? ""
    for request in workers[index].warns {
      emit(.answer(request, Answer(.done, "\(workers[index].id) \(text)")))
    }
    workers[index].warns = []
  }
}

extension Engine {
  /// Records whether the worker frees memory when asked. Only an answer counts: silence concerns
  /// the watchdog, and doesn't prove that there was nothing to free.
  private mutating func learnYield(_ index: Int, of shed: ShedInFlight, freed: ByteCount) {
    if freed >= FruitlessWarnings.minYield {
      workers[index].run.fruitless = nil
    } else if shed.isAnswered, shed.kind == .memoryWarning {
      let count = workers[index].run.fruitless?.count ?? 0
      workers[index].run.fruitless = FruitlessWarnings(count: count + 1, last: now)
    }
  }
}

extension WorkerRecord {
  var isShedding: Bool { run.shed != nil || run.owesBackgroundShed || run.owesWarning }

  var shedDeadline: Instant? {
    guard let shed = run.shed else { return nil }
    return shed.isFinishing ? shed.finishBy : shed.deadline.until
  }
}

/// What a shed request achieved. Both footprints were measured.
public struct ShedRecord: Codable, Hashable, Sendable {
  public var kind: Directive.ShedKind
  public var at: Instant
  /// The footprint before the request.
  public var before: ByteCount
  /// The footprint after the answer or the deadline.
  public var after: ByteCount
  /// Whether the answer came in time.
  public var answered: Bool
}

/// Memory warnings that a worker answered in this run without freeing memory. The count is dropped
/// when a request frees some.
public struct FruitlessWarnings: Codable, Hashable, Sendable {
  public var count: Int
  public var last: Instant

  /// A smaller change doesn't count: a program's footprint varies by as much while it answers.
  static let minYield = ByteCount.kilobytes(64)
}
