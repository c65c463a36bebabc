import Glibc
import Testing

@testable import Hibernation
@testable import Linux

extension Trait where Self == ConditionTrait {
  /// For tests of trims to images and lazy restores: they take userfaultfd and a cgroup.
  static var needsUserfaults: Self {
    let reason: Comment =
      LazyRestoreTests.isPermitted()
      ? "no cgroup for workers can be made here" : "userfaultfd for workers takes root here"
    return .enabled(if: LazyRestoreTests.isPermitted() && Victim.cgroupRoot != nil, reason)
  }
}

extension HibernationService {
  /// Trims a running worker to an image.
  @discardableResult
  func trim(
    _ target: HibernationTarget, to path: String, keepsBase: Bool = false
  ) throws -> TrimSummary {
    let request = TrimRequest(
      HibernationRequest(target, to: path, overlay: keepsBase), record: path + ".trim",
      mechanism: .userfaultfd)
    return try trim(request)
  }

  /// Brings all memory of a trimmed worker back.
  @discardableResult
  func fill(_ target: HibernationTarget) throws -> TrimSummary {
    try wait { (h) throws(HibernationError) in try h.fill(target) }
  }

  /// Does what a new daemon does with a trimmed worker.
  func adoptTrimmed(_ probe: Probe, keepsTrims: Bool = false) throws {
    try Hibernator.repairTrim(record: probe.image + ".trim", of: probe.victim)
    try recover(probe.target, from: probe.image, keepsTrims: keepsTrims)
  }
}

extension Victim {
  /// Starts a program, waits until it is ready, and returns it with a path for its image.
  static func ready(_ command: [String]) throws -> (victim: Victim, image: String) {
    let victim = try Victim(ready: command, parking: .frozen)
    return (victim, Fixture.imagePath())
  }

  /// True if the program, which is `churn`, finds no wrong byte in its memory.
  var isWhole: Bool { get throws { try ask("verify").hasSuffix("errors 0") } }
}

extension Fixture {
  /// A worker with threads that use its memory in every way. It has more than 4 MB, so that its
  /// memory is copied ahead.
  static func churn(_ options: String...) throws -> [String] {
    [try compile("churn"), "4", "6", "64"] + options
  }
}

/// True if a userfaultfd watches a part of the process's memory.
func hasUserfaults(_ pid: Int32) throws -> Bool {
  try MemoryMapping.all(of: pid).contains { $0.flags.contains(.userfault) }
}

/// True if neither the image nor the copy that it refers to is on disk.
func isGone(_ path: String) -> Bool { !fileExists(path) && !fileExists(path + ".base") }
