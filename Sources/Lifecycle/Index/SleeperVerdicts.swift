import Policy

/// Why a suspended worker can't be hibernated under pressure.
enum SleeperVerdict {
  case measuring
  /// The disk has no room for its image.
  case lacksRoom(image: ByteCount)
  /// With the resume rate of all workers, its resume would take longer than a launch.
  case slow
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
  private var slow = SlotSet()
  /// By expected image.
  private(set) var withoutRoom = SlotHeap<ByteCount>()
  /// On which the members of `slow` rest.
  private var rate = ResumeRate()

  mutating func forget(_ slot: Int, isSleeper: Bool) {
    measuring.remove(slot)
    slow.remove(slot)
    withoutRoom.set(slot, nil)
    if isSleeper { unexamined.insert(slot) } else { unexamined.remove(slot) }
  }

  mutating func set(_ verdict: SleeperVerdict, of slot: Int) {
    unexamined.remove(slot)
    switch verdict {
    case .measuring: measuring.insert(slot)
    case .lacksRoom(let image): withoutRoom.set(slot, image)
    case .slow: slow.insert(slot)
    case .refused: break
    }
  }

  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: of all workers.
  mutating func reconsider(room: ByteCount, _ rate: ResumeRate) {
    while let (image, slot) = withoutRoom.first, image <= room {
      withoutRoom.set(slot, nil)
      unexamined.insert(slot)
    }
    guard rate != self.rate else { return }
    self.rate = rate
    while let slot = slow.members.last {
      slow.remove(Int(slot))
      unexamined.insert(Int(slot))
    }
  }
}

extension WorkerTable {
  /// Those of which nothing is known to prevent their hibernation.
  var sleepersToExamine: [Int] { sleepers.unexamined.members.map { index(ofSlot: Int($0)) } }

  /// Holds until the worker changes, or what the verdict rests on.
  mutating func setVerdict(_ index: Int, _ verdict: SleeperVerdict) {
    sleepers.set(verdict, of: slot(at: index))
  }
}
