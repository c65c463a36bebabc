import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// One worker whose images alternate between all kinds: complete, overlay, laid out for lazy
/// restore, or encrypted. The daemon that wrote an image reads it, or the next daemon does.
@Suite(.serialized, .needsCgroup)
struct RestoreModeTests {
  enum Mode: CaseIterable {
    case complete, overlay, lazy, lazyOverlay, encrypted

    var isLazy: Bool { self == .lazy || self == .lazyOverlay }
    var isOverlay: Bool { self == .overlay || self == .lazyOverlay }

    static let available = allCases.filter { mode in
      switch mode {
      case .lazy, .lazyOverlay: LazyRestoreTests.isPermitted()
      case .encrypted: Keyring.isUsable
      case .complete, .overlay: true
      }
    }
  }

  @Test("Every byte is right for kinds of images in any order", arguments: 1...3)
  func mixed(seed: UInt64) throws {
    var random = TestRandom(seed: seed)
    var service = HibernationService()
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    let path = Fixture.imagePath()
    var steps: [String] = []
    for round in 1...Nightly.rounds(12, of: 30) {
      let mode = try #require(Mode.available.randomElement(using: &random))
      // A later daemon knows no base, no history and no tracker of this worker.
      let isNew = Int.random(in: 0..<6, using: &random) == 0
      if isNew {
        try service.awaitFill(of: victim.target.name)
        service = HibernationService()
        try Self.waitUntilUnwatched(victim.target.root.pid)
      }
      steps.append("\(mode)\(isNew ? " by the next daemon" : "")")
      try Self.cycle(victim, service, mode, at: path)
      try #require(try victim.ask("verify") == "same", "seed \(seed), \(steps)")
      _ = try victim.ask("change \(round) \(round % 5 * 60)")
    }
    try service.awaitFill(of: victim.target.name)
    #expect(try victim.ask("verify") == "same")
    #expect(access(path, F_OK) != 0)
  }

  @Test(.enabled(if: KernelFeatures.detect().writeTracking, "this kernel can't track writes"))
  func `A copy of an old tracker doesn't make it a worker that handles its page faults`() throws {
    let overlays = Mode.available.filter(\.isOverlay)
    for mode in overlays {
      let service = HibernationService()
      let victim = try Victim(ready: "layers", "1024", parking: .frozen)
      let path = Fixture.imagePath()
      // On a busy machine the pager may not freeze a worker in time, and doesn't track it then.
      let isTracked = try eventually {
        try Self.cycle(victim, service, mode, at: path)
        try service.awaitFill(of: victim.target.name)
        return try MemoryMapping.all(of: victim.target.root.pid).contains {
          $0.flags.contains(.writesWatched)
        }
      }
      // The copies are open as in a child that is being forked.
      let copy = try service.wait { (h) throws(HibernationError) in h.trackers }
      #expect(isTracked && !copy.isEmpty, "\(mode)")
      try Self.cycle(victim, service, .complete, at: path)
      #expect(try victim.ask("verify") == "same")
    }
  }

  /// Waits until nothing watches the process's memory. A dead daemon's descriptors are closed with
  /// it. The earlier service's are closed when its thread ends, and when the last child that
  /// another test has forked has executed its program.
  private static func waitUntilUnwatched(_ pid: Int32) throws {
    let isUnwatched = try eventually(within: .seconds(60)) {
      try Eligibility.foreignUserfaults(of: pid).isEmpty
        && MemoryMapping.all(of: pid).allSatisfy {
          $0.flags.isDisjoint(with: [.writesWatched, .userfault])
        }
    }
    #expect(isUnwatched, "the earlier service still watches the worker's memory after 60 s")
  }

  private static func cycle(
    _ victim: Victim, _ service: HibernationService, _ mode: Mode, at path: String
  ) throws {
    let target = victim.target
    try service.awaitFill(of: target.name)
    try victim.suspend()
    let request = HibernationRequest(
      target, to: path, restore: mode.isLazy ? .lazy : .eager, overlay: mode.isOverlay,
      isSealed: mode == .encrypted)
    try Self.hibernate(service, request)
    #expect(try victim.anonymousMemory() <= 64 * pageSize)
    try service.resume(
      target, from: RestingImage(path: path, mode.isLazy ? .lazy(learns: true) : .eager),
      keepsBase: mode.isOverlay)
  }

  /// Hibernates, again if another test's child interferes. A child that another test is forking has
  /// a copy of this process's descriptors until it executes its program. With the descriptor of an
  /// earlier tracker the worker seems to handle its own page faults; it is refused, and unchanged.
  private static func hibernate(
    _ service: HibernationService, _ request: HibernationRequest
  ) throws {
    let deadline = Deadline(in: .seconds(60))
    while true {
      do {
        try service.hibernate(request)
        return
      } catch {
        guard "\(error)".contains("handles its own page faults"), !deadline.hasPassed else {
          throw error
        }
        usleep(50_000)
      }
    }
  }
}
