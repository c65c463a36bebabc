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
    let bedtime = Bedtime(
      identity: process.identity, session: process.session, cgroup: process.cgroup,
      ownChannels: runtime.ownChannels, leftUnread: runtime.leftUnread,
      dependsOnInputs: runtime.configuration.policy.foreground.by == .activity)
    runtime.isBusy = true
    runtime.traffic = nil
    mechanics.submit { [mailbox] in
      let outcome = Result { try bedtime.fallAsleep() }.mapError { Refusal(text: "\($0)") }
      mailbox.post { daemon in
        daemon.isDone(runtime: id) { daemon.suspensionEnded(runtime: id, outcome) }
      }
    }
  }

  /// An error's text: errors themselves aren't sendable.
  struct Refusal: Error { let text: String }

  private func suspensionEnded(
    runtime id: WorkerID, _ outcome: Result<Result<WakeSources, SystemCallError>, Refusal>
  ) {
    guard let runtime = workers[id] else { return }
    switch outcome {
    case .success(let sources):
      listen(for: runtime, at: sources)
      feed(.suspended(id))
      wakeForWhatWaits(runtime)
    case .failure(let refusal):
      feed(.suspendFailed(id, refusal.text))
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
    hibernation.hibernate(target, to: path, level: Int32(policy.compressionLevel)) {
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
      hibernation.resume(target, from: path) { [mailbox] result in
        mailbox.post { daemon in
          daemon.isDone(runtime: id) { daemon.resumeEnded(id, result, started: started) }
        }
      }
    } else {
      mechanics.submit { [mailbox] in
        let failure = Self.failure { try target.wake() }
        mailbox.post { daemon in
          daemon.isDone(runtime: id) { daemon.thawEnded(id, failure, started: started) }
        }
      }
    }
  }

  private func thawEnded(_ id: WorkerID, _ failure: String?, started: Instant) {
    guard let runtime = workers[id] else { return }
    if let failure {
      feed(.resumeFailed(id, failure, intact: true))
      repeatCall(runtime)
    } else {
      stopListening(for: runtime)
      feed(.resumed(id, EventLoop.now - started))
    }
  }

  private func resumeEnded(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, started: Instant
  ) {
    switch result {
    case .success:
      workers[id]?.imagePath = nil
      if let runtime = workers[id] { stopListening(for: runtime) }
      feed(.resumed(id, EventLoop.now - started))
    case .failure(let error):
      log(.error, "\(id): not resumed: \(error)")
      let intact = error.aftermath == .intact || error.aftermath == .ineligible
      feed(.resumeFailed(id, error.description, intact: intact))
      if intact, let runtime = workers[id] { repeatCall(runtime) }
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
