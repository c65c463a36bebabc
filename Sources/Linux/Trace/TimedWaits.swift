import CLinux
import Glibc
import Synchronization

/// Since when the threads of a sleeping worker wait in calls with a time-out, and when those end.
///
/// Every stop interrupts a thread's call, and the kernel makes it again when the thread goes on. Some
/// calls have or keep an absolute end. Others begin with their whole time again, or with what was left
/// when they were interrupted; a worker that sleeps often enough would never see them end. So this
/// notes when such a call began, and `TraceSession.correctTimeouts` reduces its time when the worker
/// is woken.
///
/// One of these accompanies a worker over its sleeps: `willRest`, `rests`, `wakes`, `hasWoken`. What it
/// knows outlives the daemon as `kept` in the worker's record. Without that, or where a call isn't
/// known, the time since a thread last ran counts, which is the time asleep at least in part.
public final class TimedWaits: Sendable {
  private struct Wait {
    var call: WaitingCall
    /// Nanoseconds of CLOCK_MONOTONIC.
    var began: Int64
    /// That is when its time-out began, and not only when the thread came to rest.
    var isExact = false
    var whole: Duration?
    var end: WaitingCall.Limit?
    /// The program has given the end, and not the span.
    var isAbsolute = false
  }

  private struct Seen {
    var pid: Int32
    var call: WaitingCall
    var limit: WaitingCall.Limit?
    var run: ThreadRun?
  }

  private struct State {
    /// When the worker came to rest; nil while it runs.
    var restsSince: Int64?
    var waits: [Int32: Wait] = [:]
    /// Before the worker comes to rest.
    var seen: [Int32: Seen] = [:]
    /// Where nothing was noted: when a thread last ran.
    var lastRan: [Int32: Int64] = [:]
    /// When a thread's time-out was corrected, since it came to rest. If waking fails then, what was over
    /// must not be subtracted once more.
    var corrected: [Int32: Int64] = [:]

    func span(from start: Int64?, of thread: Int32, to now: Int64) -> Int64? {
      start.map { max(0, now - max($0, corrected[thread] ?? $0)) }
    }
  }

  private let state = Mutex(State())

  public init() {}

  // MARK: falling asleep

  /// Notes what each thread waits for, and since when. To be called before anything stops them, because
  /// that makes them run for a moment. It takes the right to trace.
  public func willRest(_ tree: ProcessTree) {
    let seen = Self.look(at: tree)
    state.withLock {
      $0.seen = seen
      $0.lastRan = [:]
      $0.restsSince = nil
    }
  }

  private static func look(at tree: ProcessTree) -> [Int32: Seen] {
    var seen: [Int32: Seen] = [:]
    for pid in tree.pids {
      let reader = WaitReader(pid: pid)
      for thread in (try? threads(of: pid)) ?? [] {  // One that has ended has none.
        // Most threads wait for ever: then the scheduler isn't asked.
        guard let first = WaitingCall.read(thread: thread, of: pid) else { continue }
        let limit = reader.limit(of: first)
        if limit == nil, !first.isRestart { continue }
        let run = ThreadRun.read(thread: thread, of: pid)
        guard let call = WaitingCall.read(thread: thread, of: pid), call == first else { continue }
        seen[thread] = Seen(pid: pid, call: call, limit: limit, run: run)
      }
    }
    return seen
  }

  /// The worker has come to rest.
  public func rests(_ tree: ProcessTree) {
    let now = Clocks.monotonic
    var clocks = ProcessorClocks()
    let (seen, earlier) = state.withLock { ($0.seen, $0.waits) }
    var waits: [Int32: Wait] = [:]
    for (thread, before) in seen {
      guard let call = WaitingCall.read(thread: thread, of: before.pid), call == before.call else {
        continue
      }
      var wait = Wait(call: call, began: now, whole: nil, end: nil)
      if let began = Self.began(before, thread: thread, now: now, &clocks) {
        wait.began = began
        wait.isExact = true
      }
      complete(&wait, before: before, now: now, earlier: earlier[thread])
      waits[thread] = wait
    }
    state.withLock {
      $0.restsSince = now
      $0.waits = waits
      $0.seen = [:]
      $0.corrected = [:]
    }
  }

  /// When the thread began to wait; nil where that can't be verified. It has waited ever since if the stop
  /// was the only thing that made it begin to wait once more.
  private static func began(
    _ before: Seen, thread: Int32, now: Int64, _ clocks: inout ProcessorClocks
  ) -> Int64? {
    guard let run = before.run, run.isWaiting,
      let after = ThreadRun.read(thread: thread, of: before.pid),
      after.waits == run.waits + 1
    else { return nil }
    let began: Int64?
    if let time = clocks.monotonic(run.lastRan, of: run.processor) {
      began = time
    } else if run.processor == after.processor {
      began = now - (after.lastRan - run.lastRan)
    } else {
      began = nil
    }
    return began.map { min($0, now) }
  }

  /// When it ends, and how long it was to be.
  private func complete(_ wait: inout Wait, before: Seen, now: Int64, earlier: Wait?) {
    switch before.limit {
    case .relative(let span):
      wait.whole = .nanoseconds(span)
      let left =
        wait.call.again == CLINUX_AGAIN_FROM_REMAINDER
        ? WaitReader(pid: before.pid).limit(of: wait.call) : nil
      if case .relative(let left) = left, left < span {
        // The kernel has written what was left when it came to rest.
        wait.end = .monotonic(now + left)
      } else {
        wait.end = .monotonic(wait.began + span)
      }
    case .monotonic(let end):
      wait.isAbsolute = true
      wait.end = before.limit
      if wait.isExact { wait.whole = .nanoseconds(end - wait.began) }
    case .realtime(let end):
      wait.isAbsolute = true
      wait.end = before.limit
      if wait.isExact { wait.whole = .nanoseconds(end - Clocks.realtime + now - wait.began) }
    case nil: break
    }
    guard let earlier, wait.call.isSame(as: earlier.call) else { return }
    // The same one as in its last sleep, shortened meanwhile; or another just like it, for which it does
    // no harm to be taken for a longer one. Of a call that the kernel makes again by itself, its end is
    // known from the first time only.
    if wait.whole == nil || earlier.whole ?? .zero > wait.whole ?? .zero {
      wait.whole = earlier.whole
    }
    if wait.call.isRestart { wait.end = earlier.end }
  }

  /// When each of them would end by itself. A call with an absolute end, of which it is known how long it
  /// waits already, is there twice: it may have been made again by the program many times, so that its
  /// whole isn't what was asked for at first.
  public var dueTimes: [DueTime] {
    let (now, realtime) = (Clocks.monotonic, Clocks.realtime)
    return state.withLock { state in
      state.waits.values.flatMap { wait -> [DueTime] in
        let left: Int64
        switch wait.end {
        case .monotonic(let end): left = end - now
        case .realtime(let end): left = end - realtime
        case .relative, nil: return []
        }
        let time = DueTime(
          source: .timeout, remaining: .nanoseconds(max(0, left)), whole: wait.whole)
        guard wait.isAbsolute, wait.whole != nil else { return [time] }
        return [time, DueTime(source: .timeout, remaining: time.remaining, whole: nil)]
      }
    }
  }

  // MARK: waking

  /// Before threads are seized to be woken, which makes them run: notes when those that nothing is
  /// known of last ran.
  public func wakes(_ tree: ProcessTree) {
    let (restsSince, waits) = state.withLock { ($0.restsSince, $0.waits) }
    let known = restsSince == nil ? [] : Set(waits.keys)
    var clocks = ProcessorClocks()
    var lastRan: [Int32: Int64] = [:]
    for pid in tree.pids {
      for thread in (try? threads(of: pid)) ?? [] where !known.contains(thread) {  // The same.
        if let restsSince {
          lastRan[thread] = restsSince
          continue
        }
        guard let call = WaitingCall.read(thread: thread, of: pid),
          call.again != CLINUX_AGAIN_AS_IT_IS, let run = ThreadRun.read(thread: thread, of: pid)
        else { continue }
        lastRan[thread] = clocks.monotonic(run.lastRan, of: run.processor)
      }
    }
    state.withLock { $0.lastRan = lastRan }
  }

  /// How long a thread's time-out has run; nil: not known.
  func waited(_ thread: Int32, since now: Int64) -> Int64? {
    state.withLock { state in
      let began =
        state.restsSince == nil
        ? state.lastRan[thread] : state.waits[thread]?.began ?? state.lastRan[thread]
      return state.span(from: began, of: thread, to: now)
    }
  }

  /// How long it has been at rest; nil: not known.
  func rested(_ thread: Int32, since now: Int64) -> Int64? {
    state.withLock { state in
      state.span(from: state.restsSince ?? state.lastRan[thread], of: thread, to: now)
    }
  }

  /// Its time-out is right as of `now`. `call`: how it is made again, if that has changed.
  func isCorrected(_ thread: Int32, now: Int64, call: clinux_call?) {
    state.withLock {
      $0.corrected[thread] = now
      if let call { $0.waits[thread]?.call = WaitingCall(call) }
    }
  }

  /// It runs.
  public func hasWoken() {
    state.withLock {
      $0.restsSince = nil
      $0.lastRan = [:]
      $0.corrected = [:]
    }
  }

  /// It has run for a moment since, and rests again. Nothing is known of what it did.
  public func restsAnew() {
    let now = Clocks.monotonic
    state.withLock {
      $0.restsSince = now
      for thread in $0.waits.keys {
        $0.waits[thread]?.began = now
        $0.waits[thread]?.isExact = false
      }
      $0.corrected = [:]
    }
  }

  // MARK: outliving a daemon

  /// What a later daemon must know: nanoseconds of CLOCK_MONOTONIC.
  public struct Kept: Hashable, Sendable {
    public var restsSince: Int64
    /// By thread; the others' began when it came to rest.
    public var began: [Int32: Int64]

    public init(restsSince: Int64, began: [Int32: Int64] = [:]) {
      self.restsSince = restsSince
      self.began = began
    }
  }

  /// nil while it runs.
  public var kept: Kept? {
    state.withLock { state in
      state.restsSince.map { since in
        let exact = state.waits.filter {
          $0.value.isExact && Self.countsFromBeginning($0.value.call)
        }
        return Kept(restsSince: since, began: exact.mapValues(\.began))
      }
    }
  }

  private static func countsFromBeginning(_ call: WaitingCall) -> Bool {
    call.again != CLINUX_AGAIN_AS_IT_IS && call.again != CLINUX_AGAIN_FROM_REMAINDER
  }

  /// Goes on where another daemon has left it.
  public convenience init(_ kept: Kept) {
    self.init()
    state.withLock {
      $0.restsSince = kept.restsSince
      for (thread, began) in kept.began {
        $0.waits[thread] = Wait(
          call: WaitingCall(number: -1, arguments: []), began: began, isExact: true)
      }
    }
  }
}

extension WaitingCall {
  init(_ call: clinux_call) {
    let arguments = withUnsafeBytes(of: call.arguments) {
      Array($0.bindMemory(to: UInt64.self))
    }
    self.init(
      number: call.number, arguments: arguments, stack: call.stack, instruction: call.instruction)
  }
}

/// Reads the time-outs of a process's calls, wherever they are. What can't be read isn't known.
struct WaitReader {
  private let memory: Descriptor?
  private let pidfd: Descriptor?

  init(pid: Int32) {
    memory = try? Descriptor.open("/proc/\(pid)/mem")  // nil: it has ended, or may not be read.
    pidfd = try? Descriptor.pidfd(of: pid)
  }

  func limit(of call: WaitingCall) -> WaitingCall.Limit? {
    call.limit(read: words) { descriptor, isSending in
      guard let socket = duplicate(descriptor) else { return nil }
      let time = clinux_socket_timeout(socket.raw, isSending ? 1 : 0)
      return time > 0 ? time : nil
    }
  }

  func words(at address: UInt64) -> (Int64, Int64)? {
    guard let memory else { return nil }
    var words: [Int64] = [0, 0]
    let count = pread(memory.raw, &words, 16, off_t(truncatingIfNeeded: address))
    return count == 16 ? (words[0], words[1]) : nil
  }

  /// Held for a moment.
  func duplicate(_ number: Int32) -> Descriptor? {
    guard let pidfd else { return nil }
    let result = clinux_pidfd_getfd(pidfd.raw, number)
    return result < 0 ? nil : Descriptor(owning: result)
  }
}
