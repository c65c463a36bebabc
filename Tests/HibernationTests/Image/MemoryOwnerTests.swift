import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The process whose memory is written, and the image that the memory comes from.
@Suite(.serialized)
struct MemoryOwnerTests {
  let service = HibernationService()

  private static let testPage = PageRange(address: 0x1000_0000_0000, length: pageSize)

  @Test(.enabled(if: geteuid() == 0, "choosing a process's number takes root"))
  func `A process that gets the pid of a worker's process keeps its memory`() throws {
    let program = try Fixture.compile("stranger")
    let worker = try Victim([program, "0"])
    try #require(try worker.line() == "ready \(worker.process.pid)")
    let identity = worker.process.identity
    let memory = try worker.target.memory(of: identity)
    let target = worker.target
    // A start time has a resolution of 10 ms.
    usleep(30_000)
    kill(identity.pid, SIGKILL)
    reap(identity.pid)

    let stranger = try Victim([program, "\(identity.pid)"])
    try #require(try stranger.line() == "ready \(identity.pid)")
    defer { kill(identity.pid, SIGKILL) }
    let bytes = [UInt8](repeating: 0x57, count: Int(pageSize))
    let refusal = #expect(throws: SystemCallError.self) {
      try memory.write([Self.testPage], from: bytes)
    }
    #expect(refusal?.meansVanished == true)
    let opening = #expect(throws: SystemCallError.self) { try target.memory(of: identity) }
    #expect(opening?.meansVanished == true)
    #expect(try stranger.ask("show") == "........")
  }

  private func torture(_ parking: Victim.Parking, seed: Int) throws -> (Victim, String) {
    let victim = try Victim(ready: "torture", "2", "14", "\(seed)", parking: parking)
    return (victim, try victim.ask("sum"))
  }

  private func refusal(_ victim: Victim, from image: RestingImage) throws -> HibernationError {
    try #require(
      #expect(throws: HibernationError.self) { try service.resume(victim.target, from: image) })
  }

  @Test(arguments: Nightly.one(of: Victim.Parking.available))
  func `Workers whose images were exchanged aren't resumed`(parking: Victim.Parking) throws {
    let (one, sum) = try torture(parking, seed: 3)
    let (other, otherSum) = try torture(parking, seed: 4)
    let (path, otherPath) = (Fixture.imagePath(), Fixture.imagePath())
    let image = try one.sleep(service, at: path).image
    let otherImage = try other.sleep(service, at: otherPath).image
    try exchange(path, otherPath)
    for (victim, image) in [(one, image), (other, otherImage)] {
      let error = try refusal(victim, from: image)
      #expect(error.aftermath == .unverifiable)
      #expect(error.reason.contains("it was replaced"), "\(error)")
    }
    // Nothing was written: with the right images, the workers are as they were.
    try exchange(path, otherPath)
    try one.wake(service, from: path)
    try other.wake(service, from: otherPath)
    #expect(try one.ask("sum") == sum)
    #expect(try other.ask("sum") == otherSum)
  }

  private func exchange(_ one: String, _ other: String) throws {
    let between = one + ".between"
    for (from, to) in [(one, between), (other, one), (between, other)] {
      _ = try systemCall("rename", on: from) { rename(from, to) }
    }
  }

  @Test(
    "An older image of the same worker isn't restored, by this daemon or by the next one",
    arguments: Nightly.one(of: Victim.Parking.available))
  func older(parking: Victim.Parking) throws {
    let (victim, sum) = try torture(parking, seed: 5)
    let path = try victim.sleep(service)
    let old = try readFile(path)
    try victim.wake(service, from: path)
    let image = try victim.sleep(service, at: path).image
    let mark = try #require(image.expectation.mark)
    let new = try readFile(path)
    try ImageFormatTests.write(old, to: path)
    #expect(try refusal(victim, from: image).aftermath == .unverifiable)

    // The next daemon has the mark from the worker's record.
    let expected = ImageExpectation.image(try #require(ImageMark(text: mark.text)))
    let target = victim.target
    #expect(!Hibernator.isAtRest(target, on: path, expecting: expected))
    if parking == .frozen {
      let error = #expect(throws: HibernationError.self) {
        try HibernationService().recover(target, from: path, expecting: expected)
      }
      #expect(error?.aftermath == .unverifiable)
    }
    try ImageFormatTests.write(new, to: path)
    #expect(Hibernator.isAtRest(target, on: path, expecting: expected) == (parking == .frozen))
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "A worker that is recorded as hibernated isn't woken from another worker's image at its path",
    .needsCgroup)
  func recordedAsHibernated() throws {
    let (victim, sum) = try torture(.frozen, seed: 6)
    let (other, _) = try torture(.frozen, seed: 7)
    let (path, otherPath) = (Fixture.imagePath(), Fixture.imagePath())
    try victim.sleep(service, at: path)
    try other.sleep(service, at: otherPath)
    let target = victim.target
    let error = #expect(throws: HibernationError.self) {
      try HibernationService().recover(target, from: otherPath, expecting: .hibernated)
    }
    #expect(error?.aftermath == .unverifiable)
    #expect(access(otherPath, F_OK) == 0, "it is another worker's memory")
    #expect(try victim.isSuspended)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test func `A mark survives a worker's record, and no other text is read as a mark`() {
    let mark = ImageMark(
      id: ImageID(halves: (.max, 7)), indexChecksum: 0xffff_ffff, fileLength: 1 << 40)
    #expect(ImageMark(text: mark.text) == mark)
    for text in ["", "1-2-3", "1-2-3-4-5", "1-2-x-4", "1-2-100000000-4", "1--3-4"] {
      #expect(ImageMark(text: text) == nil, "\(text)")
    }
  }

  @Test(arguments: ["fifo", "link", "device", "directory"])
  func `A file that isn't regular is refused as an image at once`(kind: String) throws {
    let path = Fixture.imagePath()
    let real = Fixture.imagePath()
    _ = try ImageWriter(path: real).commit(processes: [])
    switch kind {
    case "fifo": _ = try systemCall("mkfifo", on: path) { mkfifo(path, 0o600) }
    case "link": _ = try systemCall("symlink", on: path) { symlink(real, path) }
    case "device": _ = try systemCall("symlink", on: path) { symlink("/dev/zero", path) }
    default: _ = try systemCall("mkdir", on: path) { mkdir(path, 0o700) }
    }
    let error = #expect(throws: ImageError.self) { try ImageReader(path: path) }
    #expect(error?.description == "\(path) is not a hibernation image: not a regular file")
  }

  @Test func `A FIFO with a fault journal's name doesn't block the search for journals`() throws {
    let path = "/memfd:dormouse-faults (deleted)"
    guard geteuid() == 0, Program.find("python3") != nil else {
      return notTestedHere("a FIFO in / takes root, and python3")
    }
    unlink(path)
    _ = try systemCall("mkfifo", on: path) { mkfifo(path, 0o600) }
    defer { unlink(path) }
    let script = """
      import os, sys
      fd = os.open("\(path)", os.O_RDONLY | os.O_NONBLOCK)
      print("ready", flush=True)
      sys.stdin.readline()
      """
    let victim = try Victim(ready: ["python3", "-c", script])
    #expect(try FaultJournal.all(in: victim.process.pid).isEmpty)
  }
}
