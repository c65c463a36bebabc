import Linux

// The rollback of a hibernation that failed after commit A: the worker's memory is in the image
// only.

extension Operation {
  /// Writes all pages back. If that works, the worker is as it was.
  mutating func rollBack(after error: HibernationError) -> HibernationError {
    do throws(HibernationError) {
      try restoreMemory()
      ResumeMarker.discardImage(at: path, of: target)
      release()
      return error
    } catch let second {
      detach()
      if second.aftermath == .vanished { return second }
      return HibernationError(
        error.phase, "\(error.reason); undoing it failed: \(second)", aftermath: .unverifiable)
    }
  }

  private func restoreMemory() throws(HibernationError) {
    if processes.isEmpty {
      // The worker is at rest already: it is restored in the ordinary way, but stays suspended.
      return try Self.repeating(while: { target.hasLivingProcess }) {
        () throws(HibernationError) in
        _ = try hibernator.restoreMemory(target, from: image, run: false)
      }
    }
    let sessions = processes.map(\.session)
    try Self.repeating(while: { sessions.contains { $0.isAlive() } }) {
      () throws(HibernationError) in
      try unregister()
      let reader = try hibernator.openVerified(image, of: target, heldBase: overlay?.base)
      try hibernator.writeBack(reader, into: target, sessions: sessions)
    }
    for seized in processes {
      if seized.isParked { try attempt(.writingBack) { try seized.parking.leave() } }
      for thread in seized.session.threads {
        do throws(TraceError) { try seized.session.restore(thread) } catch {
          // A process that is being killed needs no registers.
          guard case .vanished = error else { throw .from(error, in: .writingBack) }
        }
      }
    }
  }

  /// Repeats a step while it fails for a reason that may pass. That may be a lack of descriptors,
  /// which is often the reason why the hibernation failed, too. The time is limited: the worker is
  /// stopped, and can't be ended in an orderly way meanwhile.
  static func repeating(
    for limit: Duration = .seconds(30), while lives: () -> Bool,
    _ step: () throws(HibernationError) -> Void
  ) throws(HibernationError) {
    let end = Deadline(in: limit)
    var pause = Duration.milliseconds(2)
    while true {
      do throws(HibernationError) { return try DescriptorReserve.use(step) } catch {
        guard error.aftermath == .intact, !end.hasPassed, lives() else { throw error }
        pauseThread(for: pause)
        pause = min(pause * 2, .milliseconds(500))
      }
    }
  }
}
