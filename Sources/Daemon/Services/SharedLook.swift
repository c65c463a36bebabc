import Linux

/// Inspects something that may not respond, such as a file system, on a thread of `LoopJobs`. At
/// most one inspection runs at a time. A caller that asks during an inspection gets the result of
/// the next one, because the state may have changed since the current one began. Belongs to the
/// loop's thread.
final class SharedLook<Value: Sendable> {
  typealias Completion = (Value?) -> Void

  private let jobs: LoopJobs
  private let subject: String
  private let limit: Duration
  /// Called on the loop. It returns the closure that does the work on the other thread.
  private let prepare: () -> @Sendable () -> Value
  private var waiting: [Completion] = []
  private var isUnderWay = false

  init(
    _ jobs: LoopJobs, about subject: String, within limit: Duration,
    _ prepare: @escaping () -> @Sendable () -> Value
  ) {
    self.jobs = jobs
    self.subject = subject
    self.limit = limit
    self.prepare = prepare
  }

  /// Requests an inspection. `then` is called once, on the loop, and never before this returns. It
  /// gets nil if there was no result within the limit. While that inspection hangs, each further
  /// one gets nil at once.
  func ask(then completion: @escaping Completion) {
    waiting.append(completion)
    if !isUnderWay { begin() }
  }

  private func begin() {
    isUnderWay = true
    let served = waiting
    waiting = []
    // This object lives as long as the inspection, since its worker may be removed meanwhile.
    jobs.run(about: subject, within: limit, prepare()) { [self] outcome in
      var value: Value?
      if case .done(let found) = outcome { value = found }
      for completion in served { completion(value) }
      isUnderWay = false
      if !waiting.isEmpty { begin() }
    }
  }
}

/// Limits how many inspections run at once, so that a few threads serve a thousand workers. An
/// inspection that takes longer than the timeout no longer counts, so that one that hangs delays no
/// other. Belongs to the loop's thread.
final class LookLine {
  /// Starts an inspection, which calls `done` when it has ended.
  typealias Start = (_ done: @escaping () -> Void) -> Void

  private let loop: EventLoop
  private let width: Int
  private let patience: Duration
  private var waiting: [Start] = []
  private var next = 0
  private var places: Set<UInt64> = []
  private var count: UInt64 = 0

  init(_ loop: EventLoop, width: Int = 4, patience: Duration = .milliseconds(200)) {
    self.loop = loop
    self.width = width
    self.patience = patience
  }

  func enter(_ start: @escaping Start) {
    waiting.append(start)
    advance()
  }

  private func advance() {
    while places.count < width, next < waiting.count {
      let start = waiting[next]
      next += 1
      if next == waiting.count { (waiting, next) = ([], 0) }
      count += 1
      let place = count
      places.insert(place)
      let timer = loop.after(patience) { [unowned self] in leave(place) }
      start { [unowned self, loop] in
        loop.cancel(timer)
        leave(place)
      }
    }
  }

  private func leave(_ place: UInt64) {
    if places.remove(place) != nil { advance() }
  }
}
