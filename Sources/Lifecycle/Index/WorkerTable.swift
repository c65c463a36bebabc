import Policy

/// All workers, sorted by name, with derived data that lets the engine decide without reading all
/// of them.
///
/// A change through the subscript marks the worker twice: as *pending*, to be advanced in this
/// event, and as *stale*, because its groups and its next deadline may have changed. So no rule can
/// forget to report what it has changed. An index is a position in the order of names, and is valid
/// until a worker is added or removed. Internally a worker keeps its *slot* for life.
struct WorkerTable: Sendable, RandomAccessCollection {
  /// Boxed, so that a function that reads a record gets it in place. An array would give it a copy.
  private var records: [CopyOnWriteBox<WorkerRecord>] = []
  private var freeSlots: [Int] = []
  /// The slot of each index.
  private var slots: [Int32] = []
  /// The index of each slot.
  private var indexOfSlot: [Int32] = []
  private var slotByName: [WorkerID: Int] = [:]

  private var pending = IndexBits()
  private var stale: [Int32] = []
  private var isStale: [Bool] = []
  /// For a stale slot: the worker itself has changed or is due, and not only what its groups depend
  /// on beside it.
  private var isChanged: [Bool] = []
  private var groups: [WorkerGroups] = []
  private var members: [SlotSet] = .init(repeating: SlotSet(), count: WorkerGroups.count)
  private var deadlines = SlotHeap<Instant>()
  private var hasForgettable = false
  /// The workers that could be hibernated under pressure, and what prevents it.
  var sleepers = SleeperVerdicts()
  /// The workers of the group `held`.
  var due = DueSleepers()
  var termination = TerminationIndex()

  /// The parts of the footprints of all live workers that are in RAM, together; always up to date.
  private(set) var resident = ByteCount.zero

  var startIndex: Int { 0 }
  var endIndex: Int { slots.count }

  subscript(index: Int) -> WorkerRecord {
    _read { yield records[Int(slots[index])].wrappedValue }
    _modify {
      let slot = Int(slots[index])
      let before = residentIfAlive(slot)
      pending.insert(index)
      markStale(slot)
      defer { resident += residentIfAlive(slot) - before }
      yield &records[slot].wrappedValue
    }
  }

  func index(of worker: WorkerID) -> Int? { slotByName[worker].map { Int(indexOfSlot[$0]) } }
  func index(ofSlot slot: Int) -> Int { Int(indexOfSlot[slot]) }
  func slot(at index: Int) -> Int { Int(slots[index]) }

  /// The number of slots, including those without a worker.
  var slotCount: Int { records.count }
  func groups(ofSlot slot: Int) -> WorkerGroups { groups[slot] }

  /// The worker's share of a simulated device's memory.
  private func residentIfAlive(_ slot: Int) -> ByteCount {
    let isAlive = records[slot].wrappedValue.state.isAlive
    return isAlive ? records[slot].wrappedValue.resident : .zero
  }

  private mutating func markStale(_ slot: Int) {
    isChanged[slot] = true
    markForRegrouping(slot)
  }

  private mutating func markForRegrouping(_ slot: Int) {
    guard !isStale[slot] else { return }
    isStale[slot] = true
    stale.append(Int32(slot))
  }
}

// MARK: adding and removing

extension WorkerTable {
  /// Adds a worker and returns its index. There must be no worker of that name.
  @discardableResult
  mutating func add(_ record: WorkerRecord) -> Int {
    let slot = freeSlots.popLast() ?? records.count
    if slot == records.count {
      records.append(CopyOnWriteBox(wrappedValue: record))
      isStale.append(false)
      isChanged.append(false)
      groups.append([])
      indexOfSlot.append(0)
    } else {
      records[slot] = CopyOnWriteBox(wrappedValue: record)
    }
    slotByName[record.id] = slot
    let index = insertionPoint(of: record.id)
    renumber { $0.insert(Int32(slot), at: index) }
    pending.insert(index)
    markStale(slot)
    return index
  }

  /// Removes workers that have ended and were to be forgotten then. It considers what was true at
  /// the last `refresh`.
  mutating func removeForgotten() {
    guard hasForgettable else { return }
    hasForgettable = false
    for index in indices.reversed() where self[index].isForgettable { remove(at: index) }
  }

  private mutating func remove(at index: Int) {
    let slot = Int(slots[index])
    slotByName[records[slot].wrappedValue.id] = nil
    regroup(slot, [])
    sleepers.forget(slot, isSleeper: false)
    due.forget(slot, isDue: false)
    deadlines.set(slot, nil)
    pending.remove(index)
    renumber { $0.remove(at: index) }
    freeSlots.append(slot)
  }

  /// Changes the order of names. All indices move, those of the pending workers too.
  private mutating func renumber(_ change: (inout [Int32]) -> Void) {
    var waiting: [Int] = []
    while let index = pending.first(from: 0) {
      waiting.append(Int(slots[index]))
      pending.remove(index)
    }
    change(&slots)
    for index in slots.indices { indexOfSlot[Int(slots[index])] = Int32(index) }
    termination.outdated.insertAll()
    sleepers.order.outdated.insertAll()
    for slot in waiting { pending.insert(Int(indexOfSlot[slot])) }
  }

  /// The first index whose name isn't smaller, by binary search.
  private func insertionPoint(of worker: WorkerID) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].id < worker { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

// MARK: workers to examine

extension WorkerTable {
  /// Returns the first pending worker from `start` on. It isn't pending any more then.
  mutating func popPending(from start: Int) -> Int? {
    guard let index = pending.first(from: start) else { return nil }
    pending.remove(index)
    return index
  }

  mutating func markPending(_ index: Int) { pending.insert(index) }

  /// Marks the workers whose next deadline has come.
  mutating func markDue(at now: Instant) {
    while let (at, slot) = deadlines.first, at <= now {
      deadlines.set(slot, nil)
      pending.insert(Int(indexOfSlot[slot]))
      markStale(slot)
    }
  }

  /// Marks every worker: a machine-wide rule has changed.
  mutating func markAll() {
    for index in slots.indices {
      pending.insert(index)
      markStale(Int(slots[index]))
    }
  }

  /// Marks the members of a group: a fact has changed that only decides which groups a worker
  /// belongs to.
  mutating func markStale(_ group: WorkerGroups) {
    for slot in members[group.number].members { markForRegrouping(Int(slot)) }
  }
}

// MARK: derived data

extension WorkerTable {
  /// Brings groups and deadlines up to date. It costs nothing for workers that haven't been
  /// changed.
  mutating func refresh(_ view: WorkerView) {
    guard !stale.isEmpty else { return }
    for slot in stale {
      let slot = Int(slot)
      isStale[slot] = false
      let (old, new) = (groups[slot], currentGroups(ofSlot: slot, view))
      regroup(slot, new)
      let affected = isChanged[slot] ? old.union(new) : old.symmetricDifference(new)
      if affected.contains(.hibernatable) {
        sleepers.forget(slot, isSleeper: new.contains(.hibernatable))
      }
      if affected.contains(.held) { due.forget(slot, isDue: new.contains(.held)) }
      guard isChanged[slot] else { continue }
      isChanged[slot] = false
      termination.outdated.insert(slot)
      deadlines.set(slot, currentDeadline(ofSlot: slot, after: view.now))
      if records[slot].wrappedValue.isForgettable { hasForgettable = true }
    }
    stale.removeAll(keepingCapacity: true)
  }

  // These two aren't inlined, so that the compiler doesn't copy the record.

  @inline(never) private func currentGroups(ofSlot slot: Int, _ view: WorkerView) -> WorkerGroups {
    WorkerGroups.of(records[slot].wrappedValue, view)
  }

  @inline(never) private func currentDeadline(ofSlot slot: Int, after now: Instant) -> Instant? {
    records[slot].wrappedValue.nextDeadline(after: now)
  }

  private mutating func regroup(_ slot: Int, _ new: WorkerGroups) {
    var changed = groups[slot].symmetricDifference(new)
    guard !changed.isEmpty else { return }
    groups[slot] = new
    while let group = changed.popFirst() {
      if new.contains(group) {
        members[group.number].insert(slot)
      } else {
        members[group.number].remove(slot)
      }
    }
  }

  /// The earliest deadline of all workers.
  var nextDeadline: Instant? { deadlines.first?.key }

  func isEmpty(_ group: WorkerGroups) -> Bool { members[group.number].isEmpty }

  /// The members of a group, in no particular order. A caller that needs an order has to rank them.
  func indices(_ group: WorkerGroups) -> [Int] {
    members[group.number].members.map { Int(indexOfSlot[Int($0)]) }
  }

  func contains(_ group: WorkerGroups, where matches: (WorkerRecord) -> Bool) -> Bool {
    members[group.number].members.contains { matches(records[Int($0)].wrappedValue) }
  }
}

// MARK: checkpoints

/// A checkpoint of the journal is written between two events, when all derived data is up to date.
/// Derived data that depends on the time is written beside its record.
extension WorkerTable: Codable {
  private struct Stored: Codable {
    var record: WorkerRecord
    var groups: UInt32
    var deadline: Instant?
    var isPending: Bool
  }

  private enum Key: CodingKey { case workers }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    for stored in try container.decode([Stored].self, forKey: .workers) {
      let index = add(stored.record)
      let slot = Int(slots[index])
      resident += residentIfAlive(slot)
      regroup(slot, WorkerGroups(rawValue: stored.groups))
      sleepers.forget(slot, isSleeper: groups[slot].contains(.hibernatable))
      due.forget(slot, isDue: groups[slot].contains(.held))
      deadlines.set(slot, stored.deadline)
      hasForgettable = hasForgettable || stored.record.isForgettable
      (isStale[slot], isChanged[slot]) = (false, false)
      if !stored.isPending { pending.remove(index) }
    }
    stale = []
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    let workers = indices.map { index in
      let slot = Int(slots[index])
      return Stored(
        record: records[slot].wrappedValue, groups: groups[slot].rawValue,
        deadline: deadlines.key(of: slot),
        isPending: pending.contains(index))
    }
    try container.encode(workers, forKey: .workers)
  }
}

extension WorkerRecord {
  fileprivate var isForgettable: Bool { forgetWhenGone && state == .terminated }
}
