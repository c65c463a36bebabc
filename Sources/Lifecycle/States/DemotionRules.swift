import Policy

// `hibernate.demote_after`: a worker that isn't woken for that time counts as suspended in the
// order of termination, and may lose its room on the disk to others when memory is short and the
// disk is full. It isn't terminated without pressure: an image costs nothing while its room isn't
// needed.

extension WorkerRecord {
  func isDemoted(at now: Instant) -> Bool { demotedAt.map { now >= $0 } ?? false }

  var demotedAt: Instant? {
    guard state == .hibernated else { return nil }
    return policy.hibernate.demoteAfter.map { run.restingSince + $0 }
  }
}

extension Engine {
  /// Terminates the demoted worker with the largest image, when only the disk prevents a
  /// hibernation under pressure.
  mutating func makeRoomOnDisk(_ level: PressureLevel) -> LadderState.Outcome {
    let demoted = workers.indices(.demoted).filter { !isShadow($0) }
    let biggest = demoted.max { left, right in
      let (left, right) = (workers[left], workers[right])
      let (small, large) = (left.run.hibernation.imageSize, right.run.hibernation.imageSize)
      return small == large ? right.id < left.id : small ?? .zero < large ?? .zero
    }
    guard let biggest else { return .nothingLeft }
    let after = workers[biggest].policy.hibernate.demoteAfter ?? .zero
    var reason = "disk space for other images, and not woken for \(after.text)"
    if mustWaitForVeto(biggest, reason, at: level) { return .waiting }
    reason += outcomeOfNotice(biggest)
    openBurst(at: level)
    ladderState.burst?.victims[workers[biggest].id] = JetsamBurst.Victim(why: reason)
    terminateForMemory(biggest, level)
    return .acted
  }
}
