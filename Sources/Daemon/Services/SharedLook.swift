import Linux

/// A look at something that may not answer, such as a file system, on a thread of `LoopJobs`. At most one
/// is under way. A caller that asks while one is under way gets the next one, because what it wants to know
/// may have changed since that one began. Belongs to the loop's thread.
final class SharedLook<Value: Sendable> {
  typealias Completion = (Value?) -> Void

  private let jobs: LoopJobs
  private let subject: String
  private let limit: Duration
  /// Called on the loop; what it returns is called on the other thread.
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

  /// `then` is called once, on the loop, and never before this returns. `nil`: no answer came within the
  /// limit. As long as that look hangs, every further one is answered with `nil` at once.
  func ask(then completion: @escaping Completion) {
    waiting.append(completion)
    if !isUnderWay { begin() }
  }

  private func begin() {
    isUnderWay = true
    let served = waiting
    waiting = []
    // It lives as long as the look: a worker may be removed meanwhile.
    jobs.run(about: subject, within: limit, prepare()) { [self] outcome in
      var value: Value?
      if case .done(let found) = outcome { value = found }
      for completion in served { completion(value) }
      isUnderWay = false
      if !waiting.isEmpty { begin() }
    }
  }
}

/// Lets a limited number of looks begin at once, so that a few threads look at a thousand workers. A look that
/// takes longer than `patience` gives up its place, so that one that hangs delays no other. Belongs to the
/// loop's thread.
final class LookLine {
  /// Calls its argument when the look has ended.
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
