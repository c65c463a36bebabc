import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// Suspending, hibernating and resuming, each on a thread where waiting hurts nobody.

extension Daemon {
  func suspend(_ id: WorkerID) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    // While it may still be opened: a worker's children have memory too.
    try? process.refreshMemory()
    let (identity, session, cgroup) = (process.identity, process.session, process.cgroup)
    runtime.isBusy = true
    runtime.mayBeStopped = false
    let hibernation = resumesHotFirst ? hibernation : nil
    mechanics.submit { [mailbox] in
      // Somebody who waits for a missing page can't be frozen.
      try? hibernation?.settle(id.name)
      let failure = Self.failure {
        if let cgroup {
          try cgroup.freeze(until: Deadline(in: .seconds(5)))
        } else {
          _ = try ProcessTree.stopAll(
            root: identity, session: session, until: Deadline(in: .seconds(5)))
        }
      }
      mailbox.post { daemon in
        daemon.isDone(runtime: id) {
          daemon.feed(failure.map { .suspendFailed(id, $0) } ?? .suspended(id))
        }
      }
    }
  }

  func hibernate(_ id: WorkerID) {
    guard let runtime = workers[id], let target = runtime.target() else { return }
    let policy = runtime.configuration.policy.hibernate
    let before = footprint(of: runtime) ?? .zero
    if let refusal = diskRefusal(for: before) {
      return feed(.hibernateFailed(id, refusal, permanent: false))
    }
    let path = state.image(of: id.name)
    let pids = Array(target.memories.keys)
    let started = EventLoop.now
    runtime.isBusy = true
    runtime.mayBeStopped = true
    hibernation.hibernate(
      target, to: path, level: Int32(policy.compressionLevel), lazyReady: resumesHotFirst
    ) {
      [mailbox] result in
      let after = (try? Footprint.measure(pids))?.footprint ?? 0
      mailbox.post { daemon in
        daemon.isDone(runtime: id) {
          daemon.hibernationEnded(
            id, result, path: path, before: before, after: ByteCount(after), started: started)
        }
      }
    }
  }

  private func hibernationEnded(
    _ id: WorkerID, _ result: Result<HibernationSummary, HibernationError>, path: String,
    before: ByteCount, after: ByteCount, started: Instant
  ) {
    switch result {
    case .success(let summary):
      workers[id]?.imagePath = path
      writtenToday.add(Int64(summary.imageLength))
      feed(
        .hibernated(
          id,
          HibernationResult(
            footprintBefore: before, footprintAfter: after,
            imageSize: ByteCount(Int64(summary.imageLength)),
            duration: EventLoop.now - started)))
    case .failure(let error):
      log(.warning, "\(id): not hibernated: \(error)")
      let permanent = error.aftermath == .ineligible
      feed(.hibernateFailed(id, error.description, permanent: permanent))
      // It is stopped for good: whatever its memory is now, it mustn't run on it.
      if error.aftermath == .unprovable { kill(id) }
    }
  }

  func resume(_ id: WorkerID) {
    guard let runtime = workers[id], let target = runtime.target() else { return }
    let started = EventLoop.now
    runtime.isBusy = true
    if let path = runtime.imagePath {
      let gear = resumesHotFirst ? ResumeGear.hotFirst(probing: true) : .eager
      hibernation.resume(target, from: path, gear: gear) { [mailbox] result in
        mailbox.post { daemon in
          daemon.isDone(runtime: id) { daemon.resumeEnded(id, result, started: started) }
        }
      }
    } else {
      let mayBeStopped = runtime.mayBeStopped
      mechanics.submit { [mailbox] in
        let failure = Self.failure { try target.wake(isStopped: mayBeStopped) }
        mailbox.post { daemon in
          daemon.isDone(runtime: id) {
            daemon.feed(
              failure.map { .resumeFailed(id, $0, intact: true) }
                ?? .resumed(id, EventLoop.now - started))
          }
        }
      }
    }
  }

  private func resumeEnded(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, started: Instant
  ) {
    switch result {
    case .success(let summary):
      if let reason = summary.eagerReason {
        log(.info, "\(id): all of its memory was brought back at once: \(reason)")
      }
      workers[id]?.imagePath = nil
      feed(.resumed(id, EventLoop.now - started))
    case .failure(let error):
      log(.error, "\(id): not resumed: \(error)")
      // Its end is no fault of its memory, and will be told as what it is.
      let hasEnded = error.aftermath == .vanished
      let intact = error.aftermath == .intact || error.aftermath == .ineligible || hasEnded
      feed(.resumeFailed(id, error.description, intact: intact))
      if hasEnded { kill(id) }
    }
  }

  /// An operation on another thread has ended: reports it, and then looks whether the worker has
  /// ended meanwhile.
  func isDone(runtime id: WorkerID, _ report: () -> Void) {
    guard let runtime = workers[id] else { return }
    runtime.isBusy = false
    report()
    if runtime.hasExited { rootHasEnded(runtime) }
  }

  static func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return "\(error)" }
  }
}
