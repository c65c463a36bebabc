import Linux

// The way back from a hibernation that failed after commit A: the worker's memory is in the image only.

extension Operation {
  /// Writes all pages back. If that works, the worker is as it was.
  mutating func rollBack(after error: HibernationError) -> HibernationError {
    do throws(HibernationError) {
      try DescriptorReserve.use { () throws(HibernationError) in try bringMemoryBack() }
      discardFile(path)
      release()
      return error
    } catch let second {
      detach()
      if second.aftermath == .vanished { return second }
      return HibernationError(
        error.phase, "\(error.reason); undoing it failed: \(second)", aftermath: .unverifiable)
    }
  }

  private func bringMemoryBack() throws(HibernationError) {
    if processes.isEmpty {
      // The worker rests already: it is restored in the ordinary way, but isn't let run.
      try hibernator.bringBack(target, from: image, run: false)
      return
    }
    let identities = processes.map(\.stat.identity)
    try Self.repeating(while: { !identities.allSatisfy(\.hasEnded) }) {
      () throws(HibernationError) in
      let reader = try hibernator.openOwn(image, of: target, heldBase: overlay?.base)
      try hibernator.writeBack(reader, into: target, sessions: processes.map(\.session))
    }
    for captive in processes {
      if captive.isParked { try attempt(.writingBack) { try captive.parking.leave() } }
      for thread in captive.session.threads {
        do throws(TraceError) { try captive.session.restore(thread) } catch {
          // A process that is being killed needs no registers.
          guard case .vanished = error else { throw .from(error, in: .writingBack) }
        }
      }
    }
  }

  /// Repeats a step while it fails for a reason that may pass, such as a lack of descriptors, which is often why the
  /// hibernation failed, too. The worker is stopped and its image stays; as for a fill, there is no limit but the
  /// worker's end.
  static func repeating(
    while lives: () -> Bool, _ step: () throws(HibernationError) -> Void
  ) throws(HibernationError) {
    var pause = Duration.milliseconds(2)
    while true {
      do throws(HibernationError) { return try step() } catch {
        guard error.aftermath == .intact, lives() else { throw error }
        pauseThread(for: pause)
        pause = min(pause * 2, .milliseconds(500))
      }
    }
  }
}
