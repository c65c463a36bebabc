import Synchronization
import WorkerProtocol

/// Allocates and frees slots and pages of purgeable memory.
///
/// Accesses to contents use only the words of their slots, without a lock. All code that allocates,
/// frees or empties takes the lock. Therefore code with the lock knows that the daemon, not this
/// process, is emptying a slot whose state is *purging*.
final class PurgeableHeap: Sendable {
  /// The location of a content. It is valid until `release`, or until the loss of the content was
  /// noticed.
  struct Place: Sendable {
    let slot: Int
    let generation: UInt32
    let page: Int
    let pages: Int
  }

  private struct State {
    var extents: PageExtents
    /// The allocated content of each slot; `nil` in a free slot. The array ends with the last slot
    /// that was ever used.
    var given: [Place?] = []
    var freeSlots: [Int] = []
    /// Slots whose owner was freed while the daemon was emptying them.
    var orphans: [Place] = []
  }

  private let mapping: PurgeableMapping
  private let state: Mutex<State>

  init(_ mapping: PurgeableMapping) {
    state = Mutex(State(extents: PageExtents(pages: mapping.pageCount)))
    self.mapping = mapping
  }

  /// The descriptor for the daemon; -1 if there is only private memory.
  var file: Int32 { mapping.file }

  /// The number of contents that exist, or whose loss hasn't been noticed yet.
  var givenCount: Int {
    state.withLock { state in state.given.count { $0 != nil } + state.orphans.count }
  }

  func word(_ place: Place) -> PurgeableWord { mapping.word(place.slot) }

  /// Allocates pages for a content.
  ///
  /// - Returns: zeroed pages with one access; `nil` if there is no room.
  func allocate(bytes: Int) -> Place? {
    let pages = max(0, bytes - 1) / mapping.pageSize + 1
    return state.withLock { state in
      collectOrphans(&state)
      if let place = give(pages, &state) { return place }
      // There may be contents that the daemon has emptied, and whose loss hasn't been noticed.
      collectLost(&state)
      return give(pages, &state)
    }
  }

  private func give(_ pages: Int, _ state: inout State) -> Place? {
    let slot: Int
    if let free = state.freeSlots.popLast() {
      slot = free
    } else if state.given.count < mapping.slotCount {
      slot = state.given.count
      state.given.append(nil)
    } else {
      return nil
    }
    guard let page = state.extents.allocate(pages) else {
      state.freeSlots.append(slot)
      return nil
    }
    let word = mapping.word(slot)
    let generation = word.state.nextGeneration
    let place = Place(slot: slot, generation: generation, page: page, pages: pages)
    state.given[slot] = place
    mapping.describe(slot, page: page, pages: pages)
    word.publish(PurgeableState(generation: generation, accesses: 1))
    return place
  }

  /// The bytes of a content. They may be accessed only while the content is held.
  func bytes(_ place: Place, count: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: mapping.content(page: place.page), count: count)
  }

  /// Frees a content whose owner was freed: no code will access it again.
  func release(_ place: Place) {
    state.withLock { state in
      guard isGiven(place, state) else { return }
      let word = mapping.word(place.slot)
      if let taken = word.seize(generation: place.generation) {
        empty(place, taken: taken, in: &state)
      } else if word.state.isUsed {
        // The daemon is emptying the content, or has just spared it.
        state.orphans.append(place)
        state.given[place.slot] = nil
      } else {
        recycle(place, &state)
      }
    }
  }

  /// Empties a content, unless it is held.
  func discard(_ place: Place) {
    state.withLock { discard(place, &$0) }
  }

  /// Empties all contents that aren't held.
  func discardAll() {
    state.withLock { state in
      for place in state.given.compactMap(\.self) { discard(place, &state) }
    }
  }

  private func discard(_ place: Place, _ state: inout State) {
    guard isGiven(place, state) else { return }
    if let taken = mapping.word(place.slot).take(generation: place.generation) {
      empty(place, taken: taken, in: &state)
    } else {
      collectIfLost(place, &state)
    }
  }

  /// Frees the content's slot if the content was discarded.
  func noticeLoss(_ place: Place) { state.withLock { collectIfLost(place, &$0) } }

  /// Frees the pages that the daemon was about to empty when its connection ended.
  ///
  /// The slots stay as they are, and their pages aren't allocated again: the next daemon may
  /// already be emptying them. Each daemon that is killed leaves one such slot at most.
  func daemonIsGone() {
    state.withLock { state in
      for place in state.given.compactMap(\.self) + state.orphans
      where mapping.word(place.slot).state.isPurging {
        mapping.punch(page: place.page, pages: place.pages)
      }
    }
  }

  private func isGiven(_ place: Place, _ state: State) -> Bool {
    state.given[place.slot]?.generation == place.generation
  }

  private func empty(_ place: Place, taken: PurgeableState, in state: inout State) {
    mapping.punch(page: place.page, pages: place.pages)
    mapping.word(place.slot).empty(taken)
    recycle(place, &state)
  }

  /// Frees a slot that is unused and whose pages are empty.
  private func recycle(_ place: Place, _ state: inout State) {
    state.given[place.slot] = nil
    state.freeSlots.append(place.slot)
    state.extents.release(place.page, place.pages)
  }

  private func collectIfLost(_ place: Place, _ state: inout State) {
    let current = mapping.word(place.slot).state
    if isGiven(place, state), !current.isUsed, !current.isPurging { recycle(place, &state) }
  }

  private func collectLost(_ state: inout State) {
    for place in state.given.compactMap(\.self) { collectIfLost(place, &state) }
  }

  private func collectOrphans(_ state: inout State) {
    guard !state.orphans.isEmpty else { return }
    let orphans = state.orphans
    state.orphans = []
    for place in orphans {
      let word = mapping.word(place.slot)
      if let taken = word.seize(generation: place.generation) {
        // The daemon has spared the content after all.
        empty(place, taken: taken, in: &state)
      } else if word.state.isUsed {
        state.orphans.append(place)
      } else {
        recycle(place, &state)
      }
    }
  }
}
