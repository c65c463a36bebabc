import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Trimmed workers whose images were removed: this daemon still has them open.
@Suite(.serialized, .needsUserfaults)
struct RemovedImagesTests {
  let service = HibernationService()

  @Test(
    "A trimmed worker keeps its memory if the images' directory is removed and a step then fails",
    arguments: ["trim", "hibernate", "encrypt"])
  func removed(step: String) throws {
    let (victim, directory) = try Victim.ready(Fixture.churn("drops"))
    try #require(mkdir(directory, 0o700) == 0)
    let path = directory + "/image"
    let target = victim.target
    let request = TrimRequest(
      HibernationRequest(target, to: path), record: directory + ".trim", mechanism: .userfaultfd)
    let trimmed = try service.trim(request)
    let missing = try #require(trimmed.missing)
    if step != "trim" { _ = try #require(try service.freezeTrimmed(target.name)) }
    for file in try listDirectory(directory) { unlink(directory + "/" + file) }
    try #require(rmdir(directory) == 0)
    let error = #expect(throws: HibernationError.self) {
      _ = try service.wait { (h) throws(HibernationError) in
        if step == "trim" {
          _ = try h.trim(request)
        } else {
          var request = HibernationRequest(target, to: path)
          request.isSealed = step == "encrypt"
          _ = try h.hibernate(request)
        }
      }
    }
    #expect(error?.aftermath == .intact, "\(String(describing: error))")
    #expect(step == "encrypt" || missing.bytes > 0)
    if step != "trim" {
      #expect(try target.isFrozen())
      try service.serveTrimmed(target, image: path)
      try target.wake(target.restartInterruptedSyscalls(), isStopped: false)
    }
    try #require(try victim.isWhole)
    try service.fill(target)
    try #require(try victim.isWhole)
  }
}
