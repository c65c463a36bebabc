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
  /// hibernation under pressure. None is terminated if all their images don't make enough room: the
  /// disk is full of other files, or doesn't answer.
  ///
  /// - Parameter image: the smallest image for which there is no room.
  mutating func makeRoomOnDisk(
    for image: ByteCount, _ level: PressureLevel
  ) -> LadderState.Outcome {
    let demoted = workers.indices(.demoted).filter { !isShadow($0) }
    guard image - imageSize(of: demoted) <= diskRoom else { return .nothingLeft }
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

  /// The size of the workers' images together. If an earlier daemon has written one of them, its
  /// size isn't known, and the size of all images on the disk counts.
  private func imageSize(of sleepers: [Int]) -> ByteCount {
    let sizes = sleepers.compactMap { workers[$0].run.hibernation.imageSize }
    guard sizes.count == sleepers.count else { return disk?.images ?? .zero }
    return sizes.reduce(.zero, +)
  }
}
