import Linux

/// The working set of a trimmed worker, which stays in memory. The use of a page that is in memory
/// can't be seen, so a page stays until the set is too large.
extension Hibernator {
  /// The greatest part of a process's memory that stays: one in ten.
  private static var residentDivisor: UInt64 { 10 }

  /// Chooses the pages of a process that stay in memory at a trim.
  func stayingPages(
    of process: ProcessStat, _ inherited: MissingPages?, _ name: String
  ) -> [PageRange] {
    let identity = process.identity
    let earlier = inherited?[identity]
    let total = anonymousMemory(of: process.pid) + (earlier?.missing.bytes ?? 0)
    let learned = (workingSets[name]?[identity]?.learned ?? []).map {
      PageRange(address: $0, length: pageSize)
    }
    let used = (learned + (earlier?.used ?? [])).union()
    let all = (used + (residentSets[name]?[identity] ?? [])).union()
    let chosen = [all, used, learned.union()].first { $0.bytes <= total / Self.residentDivisor }
    residentSets[name, default: [:]][identity] = chosen
    return chosen ?? []
  }
}

extension Operation {
  /// Returns the pages of a process that stay in memory.
  func residentPages(of seized: SeizedProcess) -> [PageRange] {
    let (name, pid) = (target.name, seized.stat.pid)
    if request.isTrim { return hibernator.stayingPages(of: seized.stat, inherited, name) }
    guard request.keepsWorkingSet, restore.isLazy else { return [] }
    let missing = inherited?[seized.stat.identity]?.missing.bytes ?? 0
    let kept = workingSet(of: seized).kept(ofMemory: anonymousMemory(of: pid) + missing)
    return kept.map { PageRange(address: $0, length: pageSize) }.union()
  }
}
