import CLinux
import Glibc
import Hibernation
import Linux

/// A mechanism doesn't work on this machine, and the reason.
struct MechanismRefusal: Error { let reason: String }

// The mechanisms: how the program is put to sleep, and the order that wakes it.

extension BenchSubject {
  private static let stepTimeout: Duration = .seconds(5)

  /// Measures a mechanism once, in ns. The program runs before and afterwards.
  func measure(_ mechanism: BenchMechanism, _ record: (BenchHibernation) -> Void) throws -> Int64 {
    // Pages that the last resume hasn't restored yet would be measured with the next sleep.
    try service.awaitFill(of: Self.name)
    switch mechanism {
    case .signal: return try measureSignal()
    case .freezer: return try measureFreezer()
    case .cached: return try measureHibernation(dropped: false, record)
    case .dropped: return try measureHibernation(dropped: true, record)
    case .lazy: return try measureLazyRestore(record)
    case .swap: return try measureSwap()
    case .relaunch:
      kill()
      let took = try launch()
      try warmUp()
      return took
    }
  }

  private func measureSignal() throws -> Int64 {
    let tree = try stop()
    return try timeFromOrder { try WakeOrder.performed { try tree.continueAll() } }
  }

  func stop() throws -> ProcessTree {
    let process = try running
    return try ProcessTree.stopAll(
      root: process.identity, session: process.session, cgroup: process.cgroup,
      until: Deadline(in: Self.stepTimeout))
  }

  private func measureFreezer() throws -> Int64 {
    guard let group = try running.cgroup else {
      throw MechanismRefusal(reason: cgroupRefusal ?? "no cgroup")
    }
    try group.freeze(until: Deadline(in: Self.stepTimeout))
    let took = try timeFromOrder {
      try WakeOrder.performed { try writeControl("\(group.path)/cgroup.freeze", "0") }
    }
    try group.thaw(until: Deadline(in: Self.stepTimeout))
    return took
  }

  // MARK: hibernation

  /// Measures a lazy restore. The working set of a newly launched program is learned first, in two
  /// resumes: one with nearly all pages missing, and one without that slowdown.
  private func measureLazyRestore(_ record: (BenchHibernation) -> Void) throws -> Int64 {
    let identity = try running.identity
    if learned?.process != identity { learned = (identity, 0) }
    while true {
      let isLearned = (learned?.resumes ?? 0) > 1
      let took = try measureHibernation(dropped: false, mode: .lazy(learns: true)) {
        if isLearned { record($0) }
      }
      if isLearned { return took }
      try service.awaitFill(of: Self.name)
      learned?.resumes += 1
    }
  }

  private func measureHibernation(
    dropped: Bool, mode: RestoreMode = .eager, _ record: (BenchHibernation) -> Void
  ) throws -> Int64 {
    if dropped, let reason = Self.dropObstacle(imagePath) {
      throw MechanismRefusal(reason: reason)
    }
    let process = try running
    // An error doesn't matter here: the mechanism that needs the memory reports it.
    try? process.refreshMemory()
    let pids = try process.tree().pids
    let before = try Footprint.measure(pids)
    if let group = process.cgroup {
      try group.freeze(until: Deadline(in: Self.stepTimeout))
    } else {
      _ = try stop()
    }
    let summary = try hibernate(restore: mode == .eager ? .eager : .lazy)
    if let refusal = summary.lazyRefusal {
      _ = try timeFromOrder { try beginResume(from: summary.image) }
      throw MechanismRefusal(reason: refusal)
    }
    let after = try Footprint.measure(pids)
    record(
      BenchHibernation(
        milliseconds: summary.duration / .milliseconds(1), movedBytes: summary.moved,
        imageBytes: summary.imageLength, anonymousBefore: before.anonymous,
        anonymousAfter: after.anonymous))
    if dropped { try dropImage() }
    return try timeFromOrder { try beginResume(from: summary.image.restored(mode)) }
  }

  private func hibernate(restore: ResumePreference) throws -> HibernationSummary {
    let target = try target
    let request = HibernationRequest(
      target, to: imagePath,
      compression: options.compression, restore: restore)
    do throws(HibernationError) {
      return try service.wait { (hibernator) throws(HibernationError) in
        try hibernator.hibernate(request)
      }
    } catch {
      switch error.aftermath {
      case .intact, .ineligible:
        try target.wake()
        throw MechanismRefusal(reason: error.description)
      case .vanished, .unverifiable: throw BenchError.failed(error.description)
      }
    }
  }

  private func beginResume(from image: RestingImage) throws -> WakeOrder {
    let order = try WakeOrder()
    service.resume(try target, from: image) { result in
      order.complete(result.map { _ in }.mapError { $0 })
    }
    return order
  }

  private func dropImage() throws {
    let file = try Descriptor.open(imagePath, O_RDONLY)
    try file.syncData(imagePath)
    try shim("posix_fadvise", on: imagePath) { clinux_drop_page_cache(file.raw) }
  }

  /// Returns the reason if the images can't be dropped from memory: tmpfs and ramfs have no disk
  /// (statfs(2)).
  private static func dropObstacle(_ path: String) -> String? {
    let directory = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
    let tmpfs = 0x0102_1994
    let ramfs = 0x8584_58f6
    guard [tmpfs, ramfs].contains(Int(clinux_file_system_type(directory))) else { return nil }
    return "images would be written to a file system in RAM; choose another with --state-directory"
  }
}
