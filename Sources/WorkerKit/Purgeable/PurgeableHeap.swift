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
  struct Allocation: Sendable {
    let slot: Int
    let generation: UInt32
    let page: Int
    let pages: Int
  }

  private struct State {
    var extents: PageExtents
    /// The allocated content of each slot; `nil` in a free slot. The array ends with the last slot
    /// that was ever used.
    var allocated: [Allocation?] = []
    var freeSlots: [Int] = []
    /// Slots whose owner was freed while the daemon was emptying them.
    var orphans: [Allocation] = []
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
  var allocatedCount: Int {
    state.withLock { state in state.allocated.count { $0 != nil } + state.orphans.count }
  }

  func word(_ allocation: Allocation) -> PurgeableWord { mapping.word(allocation.slot) }

  /// Allocates pages for a content.
  ///
  /// - Returns: zeroed pages with one access; `nil` if there is no room.
  func allocate(bytes: Int) -> Allocation? {
    let pages = max(0, bytes - 1) / mapping.pageSize + 1
    return state.withLock { state in
      collectOrphans(&state)
      if let allocation = allocate(pages: pages, &state) { return allocation }
      // There may be contents that the daemon has emptied, and whose loss hasn't been noticed.
      for allocation in state.allocated.compactMap(\.self) { collectIfLost(allocation, &state) }
      return allocate(pages: pages, &state)
    }
  }

  private func allocate(pages: Int, _ state: inout State) -> Allocation? {
    let slot: Int
    if let free = state.freeSlots.popLast() {
      slot = free
    } else if state.allocated.count < mapping.slotCount {
      slot = state.allocated.count
      state.allocated.append(nil)
    } else {
      return nil
    }
    guard let page = state.extents.allocate(pages) else {
      state.freeSlots.append(slot)
      return nil
    }
    let word = mapping.word(slot)
    let generation = word.state.nextGeneration
    let allocation = Allocation(slot: slot, generation: generation, page: page, pages: pages)
    state.allocated[slot] = allocation
    mapping.describe(slot, page: page, pages: pages)
    word.publish(PurgeableState(generation: generation, accesses: 1))
    return allocation
  }

  /// The bytes of a content. They may be accessed only while the content is held.
  func bytes(_ allocation: Allocation, count: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: mapping.content(page: allocation.page), count: count)
  }

  /// Frees a content whose owner was freed: no code will access it again.
  func release(_ allocation: Allocation) {
    state.withLock { state in
      guard isAllocated(allocation, state) else { return }
      let word = mapping.word(allocation.slot)
      if let claimed = word.seize(generation: allocation.generation) {
        empty(allocation, claimed: claimed, in: &state)
      } else if word.state.isUsed {
        // The daemon is emptying the content, or has just spared it.
        state.orphans.append(allocation)
        state.allocated[allocation.slot] = nil
      } else {
        recycle(allocation, &state)
      }
    }
  }

  /// Empties a content, unless it is held.
  func discard(_ allocation: Allocation) {
    state.withLock { discard(allocation, &$0) }
  }

  /// Empties all contents that aren't held.
  func discardAll() {
    state.withLock { state in
      for allocation in state.allocated.compactMap(\.self) { discard(allocation, &state) }
    }
  }

  private func discard(_ allocation: Allocation, _ state: inout State) {
    guard isAllocated(allocation, state) else { return }
    if let claimed = mapping.word(allocation.slot).claim(generation: allocation.generation) {
      empty(allocation, claimed: claimed, in: &state)
    } else {
      collectIfLost(allocation, &state)
    }
  }

  /// Frees the content's slot if the content was discarded.
  func collectIfLost(_ allocation: Allocation) { state.withLock { collectIfLost(allocation, &$0) } }

  /// Frees the pages that the daemon was about to empty when its connection ended.
  ///
  /// The slots stay as they are, and their pages aren't allocated again: the next daemon may
  /// already be emptying them. Each daemon that is killed leaves one such slot at most.
  func didDisconnect() {
    state.withLock { state in
      for allocation in state.allocated.compactMap(\.self) + state.orphans
      where mapping.word(allocation.slot).state.isPurging {
        mapping.punch(page: allocation.page, pages: allocation.pages)
      }
    }
  }

  private func isAllocated(_ allocation: Allocation, _ state: State) -> Bool {
    state.allocated[allocation.slot]?.generation == allocation.generation
  }

  private func empty(_ allocation: Allocation, claimed: PurgeableState, in state: inout State) {
    mapping.punch(page: allocation.page, pages: allocation.pages)
    mapping.word(allocation.slot).empty(claimed)
    recycle(allocation, &state)
  }

  /// Frees a slot that is unused and whose pages are empty.
  private func recycle(_ allocation: Allocation, _ state: inout State) {
    state.allocated[allocation.slot] = nil
    state.freeSlots.append(allocation.slot)
    state.extents.release(allocation.page, allocation.pages)
  }

  private func collectIfLost(_ allocation: Allocation, _ state: inout State) {
    let current = mapping.word(allocation.slot).state
    if isAllocated(allocation, state), !current.isUsed, !current.isPurging {
      recycle(allocation, &state)
    }
  }

  private func collectOrphans(_ state: inout State) {
    guard !state.orphans.isEmpty else { return }
    let orphans = state.orphans
    state.orphans = []
    for allocation in orphans {
      let word = mapping.word(allocation.slot)
      if let claimed = word.seize(generation: allocation.generation) {
        // The daemon has spared the content after all.
        empty(allocation, claimed: claimed, in: &state)
      } else if word.state.isUsed {
        state.orphans.append(allocation)
      } else {
        recycle(allocation, &state)
      }
    }
  }
}
