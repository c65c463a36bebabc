import Glibc
import Linux

/// The result of a resume.
public struct ResumeSummary: Sendable {
  /// The number of bytes that were written back.
  public var restored: UInt64
  /// The number of bytes that are filled while the worker runs.
  public var backgroundFill: UInt64 = 0
  /// The number of these bytes that are still missing, at any time. It is `nil` if none follow.
  public var missing: MissingBytes?
  /// The reason why the restore was eager although a lazy one was planned.
  public var eagerReason: String?
  /// The time from the turn of this resume until the worker ran.
  public var duration: Duration
}

extension Hibernator {
  /// Restores a hibernated worker's memory and lets it run. Call it on the hibernator's thread: it
  /// waits for the disk and for other resumes.
  ///
  /// - Parameters:
  ///   - image: the image in the hibernation's summary.
  ///   - keepsBase: true leaves the image on disk as the base of the next one, which is then an
  ///     overlay.
  ///   - recorded: called before the image may be removed, and before the worker runs. It waits
  ///     until the worker's record on disk doesn't say any more that its memory is in the image. If
  ///     the record still says so, it returns the reason. Then the resume is recorded in the
  ///     worker's cgroup; if that isn't possible either, the worker stays hibernated.
  /// - Throws: `HibernationError`. `intact`: the worker is hibernated as before. `unverifiable`:
  ///   the image is damaged or the write-back failed half-way; the worker must be killed.
  @discardableResult
  public func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool = false,
    recorded: () -> String? = { nil }
  ) throws(HibernationError) -> ResumeSummary {
    try resume(target, from: image, keepsBase: keepsBase, trimEnd: nil, recorded: recorded)
  }

  /// - Parameter trimEnd: if it is set, the worker gets only the pages that it needs until that is
  ///   requested.
  func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool, trimEnd: TrimEnd?,
    recorded: () -> String? = { nil }
  ) throws(HibernationError) -> ResumeSummary {
    try awaitFill(of: target.name)
    turn = ResumeTurns.shared.acquire()
    // A turn ends with its last reference.
    defer { turn = nil }
    // The cost of a resume is learned from this: it doesn't include the wait for other workers'
    // resumes.
    let started = Clocks.monotonic
    var summary = ResumeSummary(restored: 0, duration: .zero)
    do throws(HibernationError) {
      switch image.restore.mode {
      case .eager:
        if !image.restore.reason.isEmpty { summary.eagerReason = image.restore.reason }
        summary.restored = try restoreMemory(
          target, from: image, run: true, keepsBase: keepsBase, recorded: recorded)
      case .lazy(let learns):
        switch try restoreLazily(
          target, from: image, learns: learns, keepsBase: keepsBase, trimEnd: trimEnd,
          recorded: recorded)
        {
        case .done(let written, let backgroundFill):
          (summary.restored, summary.backgroundFill) = (written, backgroundFill)
          summary.missing = fills[target.name]?.missing
        case .refused(let reason):
          summary.eagerReason = reason
          summary.restored = try restoreMemory(
            target, from: image, run: true, keepsBase: keepsBase, recorded: recorded)
        }
      }
    } catch { throw resolved(error, target, image: image.path) }
    if summary.backgroundFill == 0 { SelfMemory.releaseUnusedSoon() }
    let took = Clocks.monotonic - started
    summary.duration = .nanoseconds(took)
    if summary.backgroundFill == 0 {
      histories[target.name, default: ResumeHistory()].recordEager(took, bytes: summary.restored)
    }
    return summary
  }

  /// Writes back, commits (B), and lets the worker run or leaves it suspended. Returns the number
  /// of bytes.
  @discardableResult
  func restoreMemory(
    _ target: HibernationTarget, from restingImage: RestingImage, run: Bool,
    keepsBase: Bool = false,
    recorded: () -> String? = { nil }
  ) throws(HibernationError) -> UInt64 {
    let image = try openVerified(restingImage, of: target, heldBase: bases[target.name]?.image)
    if image.progress == .filling { return try continueFill(image, target) }
    let sessions = tracedSessions[target.name] ?? []
    // This reaps the threads of processes that were killed while they slept.
    for session in sessions { _ = session.isAlive() }
    try checkAnyProcessLives(image)
    try checkAtRest(target)
    try writeBack(image, into: target, sessions: sessions)
    // Threads leave the scratch area before commit B: without an image a parked worker couldn't be
    // recovered. They don't return to it: if the image can't be removed, the next attempt finds no
    // scratch area.
    while let parking = parked[target.name]?.last {
      try attempt(.writingBack) { try parking.leave() }
      parked[target.name]?.removeLast()
    }
    try recordResume(from: image, of: target, recorded)
    try removeImage(image, of: target, keepsBase: keepsBase)
    parked[target.name] = nil
    // This happens only after commit B: a daemon that finds an image uses the threads' registers as
    // proof that they haven't run.
    let sessionsToDetach = tracedSessions.removeValue(forKey: target.name)
    guard run else {
      for session in sessionsToDetach ?? [] { session.detach() }
      return image.dataLength
    }
    // The worker is at rest until it is woken, so its processes stay the same.
    let tree = Result { try target.discover() }
    if case .success(let tree) = tree {
      if let sessionsToDetach {
        target.waits.willWake(tree)
        for session in sessionsToDetach { target.correctTimeouts(session) }
      } else {
        target.correctTimeouts(of: image, tree)
      }
    }
    for session in sessionsToDetach ?? [] { session.detach() }
    try attempt(.waking) { try target.wake(tree.get()) }
    return image.dataLength
  }

  func open(
    _ path: String, heldBase: ImageReader? = nil
  ) throws(HibernationError) -> ImageReader {
    do throws(ImageError) { return try ImageReader(path: path, heldBase: heldBase) } catch {
      throw HibernationError(
        .reading, error.description, aftermath: error.isTransient ? .intact : .unverifiable)
    }
  }

  /// Opens the image that the worker's memory is in, and no other one. The image is compared with
  /// the mark from commit A, if that is known. In any case the worker's root process must be in it.
  func openVerified(
    _ restingImage: RestingImage, of target: HibernationTarget, heldBase: ImageReader? = nil
  ) throws(HibernationError) -> ImageReader {
    if let absence = restingImage.expectation.absence(of: restingImage.path) { throw absence }
    let image = try open(restingImage.path, heldBase: heldBase)
    try image.check(isOf: target, restingImage.expectation)
    return image
  }

  /// Checks that not all processes of the image have ended (another process may have got a number
  /// of theirs). Some may have been killed while they slept; if all were killed, the image is
  /// useless.
  func checkAnyProcessLives(_ image: ImageReader) throws(HibernationError) {
    if !image.processes.allSatisfy(\.identity.hasEnded) { return }
    throw HibernationError(.writingBack, "it has ended", aftermath: .vanished)
  }

  /// Writes all pages back into the processes that still live. The processes are at rest, or
  /// `sessions` trace them.
  func writeBack(
    _ image: ImageReader, into target: HibernationTarget, sessions: [TraceSession],
    prefetch: Prefetch? = nil
  ) throws(HibernationError) {
    let memories = try attempt(.writingBack) { try openMemories(of: image, target) }
    FaultPoint.writingBack.pass()
    let unreachable: [Int]
    do {
      unreachable = try WriteBack(
        image: image, memories: memories, prefetch: prefetch,
        tracer: tracer(of: image.processes.map(\.identity), isTracing: !sessions.isEmpty)
      ).run(lanes: lanes)
    } catch {
      let failure = HibernationError.from(error, in: .writingBack)
      throw HibernationError(
        .writingBack, failure.reason,
        aftermath: HibernationError.isTransient(error) ? .intact : .unverifiable)
    }
    for (index, process) in image.processes.enumerated()
    where memories[index] == nil || unreachable.contains(index) {
      try checkHasEnded(process, sessions)
    }
    try checkAnyProcessLives(image)
    FaultPoint.writtenBack.pass()
  }

  /// Returns the thread that must write protected pages, or `nil` if every thread may.
  ///
  /// - Parameter isTracing: true if this thread traces the processes.
  func tracer(of processes: [ProcessIdentity], isTracing: Bool) -> WriteBackTracer? {
    if features.forcedAccess == .anyThread { return nil }
    return WriteBackTracer(untraced: isTracing ? [] : processes.filter { !$0.hasEnded })
  }

  /// Opens the memory of all processes of an image. It is `nil` for a process that has ended.
  private func openMemories(
    of image: ImageReader, _ target: HibernationTarget
  ) throws(SystemCallError) -> [ProcessMemory?] {
    var memories: [ProcessMemory?] = []
    for process in image.processes {
      do throws(SystemCallError) {
        memories.append(process.identity.hasEnded ? nil : try target.memory(of: process.identity))
      } catch {
        if HibernationTarget.lifeOfMemory(process.pid) != .hasEnded { throw error }
        memories.append(nil)
      }
    }
    return memories
  }

  /// Checks that a process that has no memory has ended. It may still be about to be killed. If it
  /// lives, the descriptor was opened before its last exec.
  private func checkHasEnded(
    _ process: ImageProcess, _ sessions: [TraceSession]
  ) throws(HibernationError) {
    let deadline = Deadline(in: .seconds(1))
    while !process.identity.hasEnded {
      for session in sessions where session.pid == process.pid { _ = session.isAlive() }
      if deadline.hasPassed {
        throw HibernationError(
          .writingBack, "the memory of process \(process.pid) can't be reached any more",
          aftermath: .unverifiable)
      }
      pauseThread(for: .milliseconds(1))
    }
  }

  func recordResume(
    from image: ImageReader, of target: HibernationTarget, _ recorded: () -> String?
  ) throws(HibernationError) {
    guard let obstacle = recorded() else { return }
    try ResumeMarker.write(image, of: target, because: obstacle)
  }

  /// Commit B without a base: removes the image.
  func removeImage(_ path: String) throws(HibernationError) {
    do throws(SystemCallError) { try removeFile(path) } catch {
      throw HibernationError(.writingBack, "can't remove \(path): \(error.reason)")
    }
    FaultPoint.unlinked.pass()
  }

  /// Checks that no other process has let the worker run while its memory was in the image.
  func checkAtRest(_ target: HibernationTarget) throws(HibernationError) {
    if tracedSessions[target.name] != nil { return }
    guard target.cgroup?.freezer != nil else {
      throw HibernationError(
        .writingBack, "no daemon has held it stopped since it was hibernated",
        aftermath: .unverifiable)
    }
    let isFrozen = try attempt(.writingBack) { try target.isFrozen() }
    if !isFrozen {
      if !target.hasLivingProcess {
        throw HibernationError(.writingBack, "it has ended", aftermath: .vanished)
      }
      throw HibernationError(
        .writingBack, "another process has thawed it while its memory was in the image",
        aftermath: .unverifiable)
    }
  }
}
