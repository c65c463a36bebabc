import CLinux
import Linux
import Synchronization

/// Pagers of trimmed workers that need nothing: they have no thread. One thread waits for all of
/// them, because a thread with its stack and the memory that the allocator keeps for it takes
/// 70 KB, and a daemon may have a thousand trimmed workers.
final class RestingPagers: Sendable {
  static let shared = RestingPagers()

  private struct State {
    var epoll: Epoll?
    /// The resting pagers, by the descriptor that ends their rest.
    var resting: [Int32: PagerRun] = [:]
  }
  private let state = Mutex(State())
  /// Processes that execute another program by now are found after this time, in ns.
  private static let checkInterval: Int64 = 10_000_000_000

  /// Lets a pager run on another thread when it is needed.
  ///
  /// - Returns: false if there are no descriptors or no threads for that.
  func add(_ pager: PagerRun) -> Bool {
    guard let descriptor = pager.wakeupDescriptor else { return false }
    let isResting = state.withLock { state in
      do throws(SystemCallError) {
        if state.epoll == nil {
          let epoll = try Epoll()
          guard Thread.start(name: "dormouse-rest", { Thread.urgently { self.wait(epoll) } }) else {
            return false
          }
          state.epoll = epoll
        }
        try state.epoll?.add(descriptor, .readable, token: UInt64(descriptor))
      } catch { return false }
      state.resting[descriptor] = pager
      return true
    }
    if isResting { SelfMemory.releaseUnusedSoon() }
    return isResting
  }

  private func remove(_ descriptor: Int32) -> PagerRun? {
    state.withLock { state in
      state.epoll?.remove(descriptor)
      return state.resting.removeValue(forKey: descriptor)
    }
  }

  // MARK: the thread

  private func wait(_ epoll: Epoll) {
    var nextCheck = Clocks.monotonic + Self.checkInterval
    while true {
      let left = max(0, nextCheck - Clocks.monotonic) / 1_000_000
      // The next call reports what an error hides now.
      for ready in (try? epoll.wait(milliseconds: Int32(left + 1))) ?? [] {
        start(Int32(ready.token))
      }
      if Clocks.monotonic >= nextCheck {
        check()
        nextCheck = Clocks.monotonic + Self.checkInterval
      }
    }
  }

  private func start(_ descriptor: Int32) {
    guard let pager = remove(descriptor) else { return }
    if ShortThreads.start(name: "dormouse-pager", { pager.run() }) { return }
    // No thread can be started for other pagers either, so each is served here for a moment.
    pager.run(briefly: true)
  }

  private func check() {
    let resting = state.withLock { Array($0.resting.keys) }
    for descriptor in resting {
      let pager = state.withLock { $0.resting[descriptor] }
      if pager?.hasLivingProcess == false { start(descriptor) }
    }
    clinux_release_unused_stack()
  }
}

/// A pager that rests without a thread and continues on another one.
final class PagerRun: Sendable {
  /// Runs a pager; see `Hibernator.page`.
  typealias Page =
    @Sendable ([PagedProcess], _ resting: inout Pager?) -> BackgroundFill.Outcome?

  /// The pager drops the last reference to the descriptors, so they are closed before the end of
  /// the fill is known.
  private let processes: LateResult<[PagedProcess]>
  /// The pager while it rests, and while it runs after a rest.
  private let pager = Mutex<Pager?>(nil)
  private let page: Page
  private let end: @Sendable (BackgroundFill.Outcome) -> Void

  init(
    _ processes: [PagedProcess], page: @escaping Page,
    end: @escaping @Sendable (BackgroundFill.Outcome) -> Void
  ) {
    self.processes = LateResult(processes)
    self.page = page
    self.end = end
  }

  /// Runs the pager on the calling thread until it has ended or rests.
  ///
  /// - Parameter isBrief: true: it rests as soon as no thread of the worker waits for a page.
  func run(briefly isBrief: Bool = false) {
    pager.withLock { $0?.trimEnd?.isBrief.store(isBrief, ordering: .relaxed) }
    repeat {
      let outcome = DescriptorReserve.use {
        pager.withLock { pager in page(processes.consume() ?? [], &pager) }
      }
      if let outcome { return end(outcome) }
      pager.withLock { $0?.repairUserfaults(briefly: isBrief) }
      // Otherwise this thread waits.
    } while !RestingPagers.shared.add(self)
  }

  /// The descriptor that is readable when the pager has to run.
  var wakeupDescriptor: Int32? { pager.withLock { $0?.wakeups?.descriptor } }

  /// False if the pager must run because all of its processes have ended.
  var hasLivingProcess: Bool {
    pager.withLock { pager in
      pager?.wakeups?.update()
      return pager?.wakeups?.hasLiving == true
    }
  }
}

extension Pager {
  /// The pause after the repair of a userfaultfd that its process has made blocking. It limits the
  /// processor time of a pager whose worker does that again and again.
  private static let repairPause = Duration.milliseconds(100)

  /// Makes the userfaultfds nonblocking again. A process can make its own one blocking, and this
  /// pager wouldn't rest then.
  ///
  /// - Parameter isBrief: true on the thread of all pagers at rest.
  fileprivate func repairUserfaults(briefly isBrief: Bool) {
    for process in processes where !process.hasVanished && process.userfault.makeNonblocking() {
      pauseThread(for: isBrief ? .milliseconds(1) : Self.repairPause)
      process.userfault.makeNonblocking()
    }
  }
}

/// What a pager of a trimmed worker waits for: a page that a thread waits for, a request, and the
/// end of a process.
final class PagerWakeups {
  private let epoll: Epoll
  private var living: [UInt64: (pidfd: Descriptor, process: LazyProcess)] = [:]

  var descriptor: Int32 { epoll.descriptor.raw }
  var hasLiving: Bool { !living.isEmpty }

  init(_ end: TrimEnd, _ processes: [LazyProcess]) throws(SystemCallError) {
    epoll = try Epoll()
    try epoll.add(end.counter.descriptor.raw, .readable, token: 0)
    for (index, process) in processes.enumerated() where !process.hasVanished {
      guard
        let pidfd = try readIfPossible({ () throws(SystemCallError) in
          try Descriptor.pidfd(of: process.pid)
        })
      else { continue }
      let token = UInt64(index + 1)
      try epoll.add(pidfd.raw, .readable, token: token)
      try epoll.add(process.userfault.descriptor.raw, .readable, token: 0)
      living[token] = (pidfd, process)
    }
  }

  /// Finds the processes that have ended, or have other memory now.
  func update() {
    for (token, one) in living where !one.process.hasMemory { remove(token) }
    // The next call reports what an error hides now.
    for ready in (try? epoll.wait(milliseconds: 0)) ?? [] {
      remove(ready.token)
    }
  }

  private func remove(_ token: UInt64) {
    guard let ended = living.removeValue(forKey: token) else { return }
    epoll.remove(ended.pidfd.raw)
    epoll.remove(ended.process.userfault.descriptor.raw)
    ended.process.hasVanished = true
  }
}
