import Policy

/// Workers whose hibernation is prevented by something outside of them: the disk's room, or what the resumes of others
/// have cost. Each is kept by the value at which its obstacle ends, so that a change concerns only those that it helps.
struct LiftableObstacles: Sendable {
  /// By expected image.
  private(set) var withoutRoom = SlotHeap<ByteCount>()
  /// By the highest rate of all workers (`ResumeRate.highest`), the highest one first: negated.
  private var slow = SlotHeap<Double>()

  mutating func remove(_ slot: Int) {
    withoutRoom.set(slot, nil)
    slow.set(slot, nil)
  }

  mutating func set(_ verdict: SleeperVerdict, of slot: Int) {
    remove(slot)
    switch verdict {
    case .lacksRoom(let image): withoutRoom.set(slot, image)
    case .slow(let highest): slow.set(slot, -highest)
    case .measuring, .refused: break
    }
  }

  /// Removes those whose obstacle has ended.
  ///
  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: of all workers.
  mutating func takeLifted(room: ByteCount, _ rate: ResumeRate, _ body: (Int) -> Void) {
    while let (image, slot) = withoutRoom.first, image <= room {
      withoutRoom.set(slot, nil)
      body(slot)
    }
    while let (highest, slot) = slow.first, rate.isWithin(-highest) {
      slow.set(slot, nil)
      body(slot)
    }
  }
}

/// The suspended workers that are due to be hibernated, and what prevented it when they were examined last. One that
/// changes, or that has a deadline, is examined again. A verdict can be found again: it isn't part of a checkpoint.
struct DueSleepers: Sendable {
  /// Those of which it isn't known.
  private var unexamined = SlotSet()
  private var obstacles = LiftableObstacles()

  mutating func forget(_ slot: Int, isDue: Bool) {
    obstacles.remove(slot)
    if isDue { unexamined.insert(slot) } else { unexamined.remove(slot) }
  }

  mutating func set(_ verdict: SleeperVerdict, of slot: Int) {
    unexamined.remove(slot)
    obstacles.set(verdict, of: slot)
  }

  /// Those that may be hibernated now. Nothing is known of them after this until they are examined.
  mutating func takeCandidates(room: ByteCount, _ rate: ResumeRate) -> [Int32] {
    obstacles.takeLifted(room: room, rate) { unexamined.insert($0) }
    return unexamined.members
  }
}

extension WorkerTable {
  /// For more room on the disk, or a lower rate of resumes: marks those of the due sleepers that it may help.
  mutating func markPendingOfDue(room: ByteCount, _ rate: ResumeRate) {
    for slot in due.takeCandidates(room: room, rate) { markPending(index(ofSlot: Int(slot))) }
  }

  /// Holds until the worker changes, or what the verdict rests on. No effect on one that isn't due; one that has
  /// changed in this event is examined once more.
  mutating func setVerdictOfDue(_ index: Int, _ verdict: SleeperVerdict) {
    let slot = slot(at: index)
    if groups(ofSlot: slot).contains(.held) { due.set(verdict, of: slot) }
  }
}
