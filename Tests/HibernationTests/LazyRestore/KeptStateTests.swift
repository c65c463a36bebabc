import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The state of a worker that a hibernator keeps between two hibernations.
@Suite struct KeptStateTests {
  private static func fill(keeping base: BaseFile) -> (BackgroundFill, BackgroundFill.Outcome) {
    var outcome = BackgroundFill.Outcome()
    outcome.keepsBase = true
    let target = HibernationTarget(name: "worker", root: ProcessIdentity(pid: 1, startTime: 0))
    return (BackgroundFill(missing: 0, target: target, image: base.path, base: base), outcome)
  }

  private static func base(in scratch: Scratch) -> BaseFile {
    BaseFile(path: "\(scratch.path)/image.base", id: .random(), made: Clocks.monotonic)
  }

  @Test func `A base stays on disk when all pages are in place`() throws {
    let scratch = try Scratch(["image.base": "pages"])
    let hibernator = Hibernator()
    let (fill, outcome) = Self.fill(keeping: Self.base(in: scratch))
    hibernator.acceptBase(of: fill, outcome, "worker")
    #expect(hibernator.bases["worker"] != nil)
    #expect(fileExists("\(scratch.path)/image.base"))
  }

  @Test(
    "A base that is to be dropped is removed even if the pager had looked for that order before")
  func lateOrder() throws {
    let scratch = try Scratch(["image.base": "pages"])
    let hibernator = Hibernator()
    let (fill, outcome) = Self.fill(keeping: Self.base(in: scratch))
    fill.dropBase()
    hibernator.acceptBase(of: fill, outcome, "worker")
    #expect(hibernator.bases["worker"] == nil)
    #expect(!fileExists("\(scratch.path)/image.base"))
  }

  @Test func `Nothing is kept of a process that has ended`() {
    let hibernator = Hibernator()
    let alive = ProcessIdentity(pid: 7, startTime: 1)
    let ended = ProcessIdentity(pid: 7, startTime: 0)
    hibernator.workingSets["worker"] = [alive: WorkingSet(), ended: WorkingSet()]
    hibernator.keepOnly([alive], of: "worker")
    #expect(hibernator.workingSets["worker"].map { Set($0.keys) } == [alive])
  }
}
