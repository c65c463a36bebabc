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
  private var obstacles = LiftableObstacles()

  /// By expected image.
  var withoutRoom: SlotHeap<ByteCount> { obstacles.withoutRoom }

  mutating func forget(_ slot: Int, isSleeper: Bool) {
    measuring.remove(slot)
    obstacles.remove(slot)
    if isSleeper { unexamined.insert(slot) } else { unexamined.remove(slot) }
  }

  mutating func set(_ verdict: SleeperVerdict, of slot: Int) {
    unexamined.remove(slot)
    if case .measuring = verdict { measuring.insert(slot) }
    obstacles.set(verdict, of: slot)
  }

  /// - Parameters:
  ///   - room: the largest image that the disk has room for.
  ///   - rate: of all workers.
  mutating func reconsider(room: ByteCount, _ rate: ResumeRate) {
    obstacles.takeLifted(room: room, rate) { unexamined.insert($0) }
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
