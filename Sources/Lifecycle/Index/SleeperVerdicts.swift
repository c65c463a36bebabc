import Policy

/// Why a suspended worker can't be hibernated under pressure.
enum SleeperVerdict {
  /// Its footprint is still being measured.
  case measuring
  /// The disk has no room for its image.
  case lacksRoom(image: ByteCount)
  /// Its resume would take longer than a launch, unless the rate of all workers is at most this
  /// (`ResumeRate.highest`).
  case slow(highest: Double)
  /// The reason is in the worker, or a deadline of the worker ends it.
  case refused
}

/// The suspended workers that the ladder may hibernate, by the result of its last search. A search
/// examines only workers without a result: with ten thousand workers for which the disk has no
/// room, an event costs nothing for them.
///
/// A verdict follows from the worker and from what `reconsider` gets. So it can be found again, and
/// isn't in a checkpoint. A worker that changes, or whose deadline comes, is examined again.
struct SleeperVerdicts: Sendable {
  private(set) var unexamined = SlotSet()
  private(set) var measuring = SlotSet()
  /// The workers that only economic limits keep in memory.
  private(set) var spared = SlotSet()
  private var obstacles = LiftableObstacles()
  /// The order of hibernation of the unexamined workers.
  var order = SleeperOrder()
  /// The resume rate of all workers by which they are ranked.
  private var rate = ResumeRate()

  /// Workers for whose image the disk has no room, by the expected size of the image.
  var withoutRoom: SlotHeap<ByteCount> { obstacles.withoutRoom }

  mutating func forget(_ slot: Int, isSleeper: Bool) {
    measuring.remove(slot)
    spared.remove(slot)
    obstacles.remove(slot)
    if isSleeper { markUnexamined(slot) } else { didExamine(slot) }
  }

  private mutating func markUnexamined(_ slot: Int) {
    spared.remove(slot)
    unexamined.insert(slot)
    order.outdated.insert(slot)
  }

  private mutating func didExamine(_ slot: Int) {
    unexamined.remove(slot)
    order.remove(slot)
  }

  /// Records what prevents a worker's hibernation. The verdict is valid until the worker, or what
  /// it depends on, changes.
  mutating func set(_ verdict: SleeperVerdict, of slot: Int, isSpared: Bool = false) {
    didExamine(slot)
    if isSpared { spared.insert(slot) } else { spared.remove(slot) }
    if case .measuring = verdict { measuring.insert(slot) }
    obstacles.set(verdict, of: slot)
  }

  /// Marks the workers whose obstacle has ended as unexamined.
  ///
  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: the resume rate of all workers.
  mutating func reconsider(room: ByteCount, _ rate: ResumeRate) {
    var lifted: [Int] = []
    obstacles.removeLifted(room: room, rate) { lifted.append($0) }
    for slot in lifted { markUnexamined(slot) }
  }

  /// Returns the slots whose rank is missing or has changed. They count as ranked from then on.
  mutating func drainOutdated(
    by criteria: [TerminationRules.Criterion], _ rate: ResumeRate, at now: Instant
  ) -> [Int32] {
    if rate != self.rate {
      self.rate = rate
      order.outdated.insertAll()
    }
    return order.outdated.drain(of: unexamined.members.lazy.map { Int($0) }, by: criteria, at: now)
  }
}
