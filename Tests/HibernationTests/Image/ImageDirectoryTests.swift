import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

@Suite("Images in a directory that isn't there, as on a volume that isn't mounted", .serialized)
struct ImageDirectoryTests {
  private let directory = Fixture.imagePath()
  private var path: String { directory + "/image" }

  init() throws { try makeDirectory(directory, mode: 0o700) }

  private func exchangeDirectory() throws {
    #expect(rename(directory, directory + ".away") == 0)
    try makeDirectory(directory, mode: 0o700)
  }

  private func bringDirectoryBack() {
    #expect(rmdir(directory) == 0 && rename(directory + ".away", directory) == 0)
  }

  @Test func `An image that is missing in another directory than its own wasn't removed`() throws {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    let mark = ImageMark(id: .random(), indexChecksum: 1, fileLength: 2)
    let expected = ImageExpectation.image(of: mark, at: path)
    let original = try #require(expected.directory)
    #expect(ImageDirectory(text: original.text) == original && ImageDirectory(text: "1") == nil)
    #expect(expected.absence(of: path) == nil)
    try exchangeDirectory()
    #expect(expected.absence(of: path)?.aftermath == .intact)
    #expect(rmdir(directory) == 0)
    #expect(expected.absence(of: path)?.aftermath == .intact, "there is no directory at all")
    #expect(rename(directory + ".away", directory) == 0 && unlink(path) == 0)
    #expect(expected.absence(of: path)?.aftermath == .unverifiable)
    // A record of an earlier version names no directory.
    #expect(ImageExpectation.hibernated.absence(of: path)?.aftermath == .unverifiable)
    #expect(ImageExpectation.unknown().absence(of: path) == nil)
    #expect(ImageExpectation.unknown(in: original).absence(of: path) == nil)
    let other = ImageDirectory(text: "1-2")
    #expect(ImageExpectation.unknown(in: other).absence(of: path)?.aftermath == .intact)
    #expect(ImageExpectation.awake(in: other).absence(of: path) == nil)
    withExtendedLifetime(file) {}
  }

  @Test(
    "A worker sleeps on while the directory of its image is away, and wakes when it is back",
    arguments: Nightly.one(of: Victim.Parking.available))
  func away(parking: Victim.Parking) throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "256", parking: parking)
    let image = try victim.sleep(service, at: path).image
    let target = victim.target
    try exchangeDirectory()
    let resuming = #expect(throws: HibernationError.self) {
      try service.resume(target, from: image)
    }
    // The next daemon knows the image from the worker's record.
    let recovering = #expect(throws: HibernationError.self) {
      try HibernationService().recover(target, from: path, expecting: image.expectation)
    }
    #expect(resuming?.aftermath == .intact && recovering?.aftermath == .intact)
    bringDirectoryBack()
    try service.resume(target, from: image)
    #expect(try victim.ask("verify") == "same")
  }

  @Test(
    "A worker whose daemon died in its resume sleeps on while the directory of its image is away",
    arguments: Nightly.one(of: Victim.Parking.available))
  func awayInResume(parking: Victim.Parking) throws {
    let path = path
    let probe = try Probe(
      RecoveryTests.command(), parking: parking, fault: .writingBack, image: path)
    let sum = try probe.talk.ask("sum")
    try probe.perform("hibernate")
    let expected = ImageExpectation.unknown(in: try #require(ImageDirectory(of: path)))
    try probe.die(during: "resume")
    try exchangeDirectory()
    func recover() throws {
      try HibernationService().recover(probe.target, from: path, expecting: expected)
    }
    let error = #expect(throws: HibernationError.self) { try recover() }
    #expect(error?.aftermath == .intact)
    bringDirectoryBack()
    try recover()
    #expect(try probe.talk.ask("sum") == sum)
  }

  @Test func `A worker whose image was removed isn't let run by a recovery`() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "256")
    let image = try victim.sleep(service, at: path).image
    #expect(unlink(path) == 0)
    let error = #expect(throws: HibernationError.self) {
      try service.recover(victim.target, from: image.path, expecting: image.expectation)
    }
    #expect(error?.aftermath == .unverifiable)
  }
}
