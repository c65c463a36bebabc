import Policy

// The rung `purge` frees memory that workers have offered, asleep or awake. They can make its
// contents again.

extension Engine {
  mutating func recordOffer(_ index: Int, _ bytes: ByteCount) {
    guard workers[index].state.isAlive else { return }
    workers[index].run.purgeable = max(.zero, bytes)
  }

  mutating func recordPurged(_ index: Int, _ freed: ByteCount) {
    guard workers[index].run.isPurging else { return }
    workers[index].run.isPurging = false
    workers[index].run.purgeable = .zero
    workers[index].run.footprint = max(.zero, workers[index].footprint - freed)
    // The offer may have included memory that had already been freed.
    emit(.measure(workers[index].id))
  }

  /// Drops the offer: the worker isn't purged again before it makes a new one.
  mutating func recordPurgeFailed(_ index: Int, _ reason: String) {
    guard workers[index].run.isPurging else { return }
    workers[index].run.isPurging = false
    workers[index].run.purgeable = .zero
  }

  /// Purges the largest offer. Among equal ones, that of the worker with the lower band.
  mutating func purgeLargest(_ level: PressureLevel) -> LadderState.Outcome {
    guard !workers.isEmpty(.offering) else { return .nothingLeft }
    for index in indices(.offering, by: \.run.purgeable) {
      let name = workers[index].id
      if isShadow(index) {
        if countShadowPurge(index, level) { return .acted }
        continue
      }
      workers[index].run.isPurging = true
      emit(.purge(name))
      ladderState.step = .purging(name, until: now + LadderState.timeout)
      return .acted
    }
    return .nothingLeft
  }

  /// The members of a group, the one with the most memory first. Among equal ones, that with the
  /// lower band is first.
  func indices(_ group: WorkerGroups, by memory: (WorkerRecord) -> ByteCount) -> [Int] {
    workers.indices(group).sorted { left, right in
      let (left, right) = (workers[left], workers[right])
      let (more, less) = (memory(left), memory(right))
      if more != less { return more > less }
      let (lower, upper) = (left.band(at: now), right.band(at: now))
      return lower == upper ? left.id < right.id : lower < upper
    }
  }
}

extension WorkerRecord {
  /// The smallest offer that is used: less than a page isn't worth a call.
  static let minOffer = ByteCount.kilobytes(4)

  var offersMemory: Bool {
    switch state {
    case .foreground, .background, .suspended, .hibernated:
      run.purgeable >= Self.minOffer && !run.isPurging
    default: false
    }
  }
}
