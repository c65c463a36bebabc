import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Resumes that neither the worker's record nor the removal of its image can show to the next
/// daemon.
@Suite(.serialized)
struct ResumeMarkerTests {
  private let service = HibernationService()
  private static let obstacle = "its record can't be written"

  private func sleeping(
    _ parking: Victim.Parking, at path: String
  ) throws -> (Victim, HibernationSummary) {
    let victim = try Victim(ready: "layers", "256", parking: parking)
    return (victim, try victim.sleep(service, at: path))
  }

  @Test(
    "A resume that can't be recorded is marked in the cgroup, and its image counts no more",
    .needsCgroup)
  func noted() throws {
    let directory = Fixture.imagePath()
    try makeDirectory(directory, mode: 0o700)
    let path = directory + "/image"
    let (victim, summary) = try sleeping(.frozen, at: path)
    let target = victim.target
    #expect(Hibernator.isAtRest(target, on: path))
    #expect(try ResumeMarker.read(of: victim.cgroup) == nil)
    try service.resume(target, from: summary.image) {
      // From here on its image can't be removed.
      #expect(rename(directory, directory + ".away") == 0)
      return Self.obstacle
    }
    #expect(rename(directory + ".away", directory) == 0)
    let mark = try #require(summary.image.expectation.mark)
    #expect(try ResumeMarker.read(of: victim.cgroup) == mark)
    #expect(try victim.ask("verify") == "same")

    // A daemon that finds the worker suspended beside that image doesn't restore its memory of that
    // time.
    try victim.suspend()
    #expect(!Hibernator.isAtRest(target, on: path))
    try HibernationService().recover(target, from: path)
    #expect(!fileExists(path))
    #expect(try victim.ask("verify") == "same")

    // The marker says nothing about a later image.
    let later = try victim.sleep(service, at: path)
    #expect(Hibernator.isAtRest(target, on: path))
    try service.resume(target, from: later.image)
    #expect(try victim.ask("verify") == "same")
  }

  @Test("A worker without a cgroup stays hibernated while its record can't be written")
  func refused() throws {
    let path = Fixture.imagePath()
    let (victim, summary) = try sleeping(.traced, at: path)
    let error = #expect(throws: HibernationError.self) {
      try service.resume(victim.target, from: summary.image) { Self.obstacle }
    }
    #expect(error?.aftermath == .intact && error?.reason.contains(Self.obstacle) == true)
    #expect(fileExists(path))
    try victim.wake(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test(.needsUserfaults)
  func `A lazy restore that can't be recorded is noted in the worker's cgroup`() throws {
    let path = Fixture.imagePath()
    let victim = try Victim(ready: "layers", "1024", parking: .frozen)
    let target = victim.target
    let summary = try victim.sleep(service, at: path, restore: .lazy)
    let image = RestingImage(
      path: path, expecting: summary.image.expectation, restore: RestorePlan(.lazy(learns: true)))
    let resumed = try service.resume(target, from: image) { Self.obstacle }
    #expect(resumed.eagerReason == nil)
    #expect(try ResumeMarker.read(of: victim.cgroup) == summary.image.expectation.mark)
    #expect(try victim.ask("verify") == "same")
    try service.awaitFill(of: target.name)
    #expect(!fileExists(path))
  }

  @Test(
    "An image that a failed hibernation can't remove counts no more",
    .needsCgroup, .enabled(if: geteuid() == 0, "takes root, to mount a file"))
  func leftByFailure() throws {
    let (path, left) = (Fixture.imagePath(), Fixture.imagePath())
    let (victim, summary) = try sleeping(.frozen, at: path)
    try StateFile.replace(left, with: try readFile(path), durability: .none)
    try service.resume(victim.target, from: summary.image)
    try victim.suspend()
    // A file on which something is mounted can't be removed.
    guard mount(left, left, nil, UInt(MS_BIND), nil) == 0 else {
      return notTestedHere("no file can be mounted here")
    }
    ResumeMarker.discardImage(at: left, of: victim.target)
    #expect(umount2(left, 0) == 0 && fileExists(left))
    #expect(try ResumeMarker.read(of: victim.cgroup) == summary.image.expectation.mark)
    try HibernationService().recover(victim.target, from: left)
    #expect(!fileExists(left))
    #expect(try victim.ask("verify") == "same")
    // An image that can be removed needs no marker.
    let next = try victim.sleep(service, at: path)
    try service.resume(victim.target, from: next.image)
    try StateFile.replace(left, with: [1], durability: .none)
    ResumeMarker.discardImage(at: left, of: victim.target)
    #expect(!fileExists(left))
    #expect(try ResumeMarker.read(of: victim.cgroup) != next.image.expectation.mark)
  }
}
