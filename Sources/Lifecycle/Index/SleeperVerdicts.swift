import Policy

/// Why a suspended worker can't be hibernated under pressure.
enum SleeperVerdict {
  case measuring
  /// The disk has no room for its image.
  case lacksRoom(image: ByteCount)
  /// Its resume would take longer than a launch, unless the rate of all workers is at most this (`ResumeRate.highest`).
  case slow(highest: Double)
  /// For a reason that lies in the worker, or that a deadline of the worker ends.
  case refused
}

/// The suspended workers that the ladder may hibernate, by what its last search found. A search asks only those of which
/// nothing is known: with ten thousand workers for which the disk has no room, an event costs nothing for them.
///
/// A verdict follows from the worker and from what `reconsider` gets, so it can be found again: it isn't part of a
/// checkpoint. A worker that changes, or that has a deadline, is asked again.
struct SleeperVerdicts: Sendable {
  private(set) var unexamined = SlotSet()
  private(set) var measuring = SlotSet()
  /// Those that only thrift keeps in memory.
  private(set) var spared = SlotSet()
  private var obstacles = LiftableObstacles()
  /// Of the unexamined ones.
  var order = SleeperOrder()

  /// By expected image.
  var withoutRoom: SlotHeap<ByteCount> { obstacles.withoutRoom }

  mutating func forget(_ slot: Int, isSleeper: Bool) {
    measuring.remove(slot)
    spared.remove(slot)
    obstacles.remove(slot)
    if isSleeper { toExamine(slot) } else { isExamined(slot) }
  }

  private mutating func toExamine(_ slot: Int) {
    spared.remove(slot)
    unexamined.insert(slot)
    order.note(slot)
  }

  private mutating func isExamined(_ slot: Int) {
    unexamined.remove(slot)
    order.remove(slot)
  }

  mutating func set(_ verdict: SleeperVerdict, of slot: Int, isSpared: Bool = false) {
    isExamined(slot)
    if isSpared { spared.insert(slot) } else { spared.remove(slot) }
    if case .measuring = verdict { measuring.insert(slot) }
    obstacles.set(verdict, of: slot)
  }

  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: of all workers.
  mutating func reconsider(room: ByteCount, _ rate: ResumeRate) {
    var lifted: [Int] = []
    obstacles.takeLifted(room: room, rate) { lifted.append($0) }
    for slot in lifted { toExamine(slot) }
  }

  /// The slots whose rank isn't known, or has changed.
  mutating func takeOutdated(
    by criteria: [TerminationRules.Criterion], _ rate: ResumeRate, at now: Instant
  ) -> [Int32] {
    order.takeOutdated(of: unexamined.members, by: criteria, rate, at: now)
  }
}

extension WorkerTable {
  /// Holds until the worker changes, or what the verdict rests on.
  mutating func setVerdict(_ index: Int, _ verdict: SleeperVerdict, isSpared: Bool) {
    sleepers.set(verdict, of: slot(at: index), isSpared: isSpared)
  }
}
