import Policy

/// Workers whose hibernation is prevented by something outside of them: the room on the disk, or
/// what the resumes of others have cost. Each is kept by the value at which its obstacle ends, so
/// that a change concerns only the workers that it helps.
struct LiftableObstacles: Sendable {
  /// Workers for whose image the disk has no room, by the expected size of the image.
  private(set) var withoutRoom = SlotHeap<ByteCount>()
  /// Workers whose resume is expected to be too slow, by the highest shared rate that would be fast
  /// enough (`ResumeRate.highest`). The keys are negated, so that the highest rate comes first.
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

  /// Removes the workers whose obstacle has ended, and passes their slots to `body`.
  ///
  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: the resume rate of all workers.
  mutating func removeLifted(room: ByteCount, _ rate: ResumeRate, _ body: (Int) -> Void) {
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

/// The suspended workers that are due to be hibernated, and what prevented it when they were last
/// examined. A worker that changes, or whose deadline comes, is examined again. The verdicts aren't
/// in a checkpoint, because they can be found again.
struct DueSleepers: Sendable {
  /// The workers without a verdict.
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

  /// The slots of the workers that may be hibernated now. They have no verdict until they are
  /// examined.
  mutating func collectCandidates(room: ByteCount, _ rate: ResumeRate) -> [Int32] {
    obstacles.removeLifted(room: room, rate) { unexamined.insert($0) }
    return unexamined.members
  }
}

extension WorkerTable {
  /// Marks the due sleepers that more room on the disk, or a lower resume rate, may help.
  mutating func markPendingOfDue(room: ByteCount, _ rate: ResumeRate) {
    for slot in due.collectCandidates(room: room, rate) { markPending(index(ofSlot: Int(slot))) }
  }

  /// Records what prevents a due worker's hibernation. The verdict is valid until the worker, or
  /// what it depends on, changes. No effect on a worker that isn't due; one that has changed in
  /// this event is examined once more.
  mutating func setVerdictOfDue(_ index: Int, _ verdict: SleeperVerdict) {
    let slot = slot(at: index)
    if groups(ofSlot: slot).contains(.held) { due.set(verdict, of: slot) }
  }
}
