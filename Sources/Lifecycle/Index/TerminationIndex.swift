import Policy

/// The order of termination, for the choice of a victim and for a jetsam report.
///
/// The next choice ranks again what has changed, and what time has changed. So an event without
/// pressure costs one insertion, and a choice costs nothing for workers that haven't changed since
/// the last one. All of it follows from the records, so it isn't in a checkpoint.
struct TerminationIndex: Sendable {
  var outdated = OutdatedSlots()
  /// The standings by slot. `nil`: the slot has no live worker.
  private var standings: [Standing?] = []
  private var suspended = SlotHeap<OrderKey>()
  private var background = SlotHeap<OrderKey>()
  private var foreground = SlotHeap<OrderKey>()

  /// Sets or removes what is known of a slot.
  ///
  /// - Parameter rung: the rung that may terminate the worker.
  fileprivate mutating func set(
    _ slot: Int, _ standing: Standing?, of rung: Ladder.Rung.Victims?
  ) {
    while standings.count <= slot { standings.append(nil) }
    standings[slot] = standing
    outdated.set(slot, until: standing?.until)
    suspended.set(slot, rung == .suspended ? standing?.key : nil)
    background.set(slot, rung == .background ? standing?.key : nil)
    foreground.set(slot, rung == .foreground ? standing?.key : nil)
  }

  /// The slots that a rung may terminate, the first to be terminated first.
  func victims(of rung: Ladder.Rung.Victims) -> SlotHeap<OrderKey>.Walk {
    switch rung {
    case .suspended: suspended.ascending
    case .background: background.ascending
    case .foreground: foreground.ascending
    }
  }

  /// A report's entries of all live workers, the first to be terminated first.
  func entries(at now: Instant) -> [JetsamReport.Entry] {
    let keys = standings.indices.compactMap { slot in
      standings[slot].map { (order: $0.key, slot: slot) }
    }
    return keys.sorted { $0.order < $1.order }.compactMap { standings[$0.slot]?.entry(at: now) }
  }
}

extension WorkerTable {
  /// Brings the order up to date. Called after `refresh`, before the order of termination is used.
  mutating func rankForTermination(by rules: TerminationRules, at now: Instant) {
    let criteria = rules.criteria
    for slot in termination.outdated.drain(of: 0..<slotCount, by: criteria, at: now) {
      let slot = Int(slot)
      guard let index = index(ofUsedSlot: slot), self[index].state.isAlive else {
        termination.set(slot, nil, of: nil)
        continue
      }
      let standing = Standing.of(self[index], name: index, by: criteria, at: now)
      let groups = groups(ofSlot: slot)
      let rung = Ladder.Rung.Victims.allCases.first { groups.contains($0.group) }
      termination.set(slot, standing, of: rung)
    }
  }

  /// The index of a slot's worker. `nil`: no worker has the slot.
  private func index(ofUsedSlot slot: Int) -> Int? {
    let index = index(ofSlot: slot)
    return index < endIndex && self.slot(at: index) == slot ? index : nil
  }
}
