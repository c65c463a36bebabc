import Policy

// `hibernate.demote_after`: who isn't woken for so long counts as suspended in the order of
// termination, and gives its place on the disk to others when memory is short and the disk full. It
// isn't terminated without pressure: an image that nobody needs the room of costs nothing.

extension WorkerRecord {
  func isDemoted(at now: Instant) -> Bool {
    guard state == .hibernated, let after = policy.hibernate.demoteAfter else { return false }
    return now >= run.restingSince + after
  }

  var demotedAt: Instant? {
    guard state == .hibernated else { return nil }
    return policy.hibernate.demoteAfter.map { run.restingSince + $0 }
  }
}

extension Engine {
  /// Under pressure, where only the disk keeps somebody from being hibernated: the demoted worker with
  /// the biggest image goes.
  mutating func makeRoomOnDisk(_ level: PressureLevel) -> LadderState.Outcome {
    let demoted = workers.indices(.demotable).filter {
      workers[$0].isDemoted(at: now) && workers[$0].goal == nil && !isShadow($0)
    }
    let biggest = demoted.max { left, right in
      let (left, right) = (workers[left], workers[right])
      let (small, large) = (left.run.hibernation.imageSize, right.run.hibernation.imageSize)
      return small == large ? right.id < left.id : small ?? .zero < large ?? .zero
    }
    guard let biggest else { return .nothingLeft }
    openBurst(at: level)
    let after = workers[biggest].policy.hibernate.demoteAfter ?? .zero
    let why = "disk space for other images, and not woken for \(after.spoken)"
    ladderState.burst?.victims[workers[biggest].id] = JetsamBurst.Victim(why: why)
    terminateForMemory(biggest, level)
    return .acted
  }
}
