import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Full disks, damaged images, and workers that die meanwhile.
@Suite(.serialized)
struct DamagedImageTests {
  let service = HibernationService()

  private func torture(_ parking: Victim.Parking) throws -> (Victim, String) {
    let victim = try Victim(ready: "torture", "8", "14", "5", parking: parking)
    return (victim, try victim.ask("sum"))
  }

  @Test(
    "A full disk leaves the worker suspended and no file behind, and another directory works",
    .enabled(if: geteuid() == 0, "mounting a small file system takes root"),
    arguments: Nightly.one(of: Victim.Parking.available))
  func fullDisk(parking: Victim.Parking) throws {
    let disk = Fixture.imagePath()
    _ = try systemCall("mkdir", on: disk) { mkdir(disk, 0o700) }
    try #require(
      try Fixture.run(["mount", "-t", "tmpfs", "-o", "size=2m", "dormouse-test", disk]) == 0)
    defer { _ = try? Fixture.run(["umount", disk]) }
    let (victim, sum) = try torture(parking)
    let before = try victim.anonymousMemory()
    let error = try victim.refusal(service, at: disk + "/image")
    #expect(error.description.contains("No space left on device"))
    #expect(error.aftermath == .intact)
    #expect(try victim.isSuspended)
    #expect(try victim.anonymousMemory() >= before)
    #expect(try listDirectory(disk).isEmpty)
    let path = try victim.sleep(service)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test func `A missing directory leaves the worker as it was`() throws {
    let (victim, sum) = try torture(.traced)
    let error = try victim.refusal(service, at: Fixture.scratch + "/none/image")
    #expect(error.description.contains("No such file or directory"))
    #expect(error.aftermath == .intact)
    try victim.carryOn()
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "No worker is resumed from a damaged image, and the undamaged image still works",
    arguments: Nightly.one(of: Victim.Parking.available))
  func damagedImage(parking: Victim.Parking) throws {
    let (victim, sum) = try torture(parking)
    let path = try victim.sleep(service)
    let image = try readFile(path)
    let state = try ProcessStat.read(victim.process.pid).cpuTicks
    var random = TestRandom(seed: 7)
    for attempt in 0..<12 {
      var bytes = image
      if attempt % 2 == 0 {
        bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      } else {
        // More than one byte is changed: a change of one may leave the same pages (a match is
        // copied from another offset with the same bytes).
        let start = Int.random(in: 64..<bytes.count - 64, using: &random)
        for index in start..<start + 64 { bytes[index] ^= 0x55 }
      }
      let damaged = Fixture.imagePath()
      try ImageFormatTests.write(bytes, to: damaged)
      let error = #expect(throws: HibernationError.self) {
        try victim.wake(service, from: damaged)
      }
      #expect(error?.aftermath == .unverifiable)
      #expect(throws: ImageError.self) { try ImageReader(path: damaged).verify() }
      unlink(damaged)
    }
    #expect(try ProcessStat.read(victim.process.pid).cpuTicks == state)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test func `A worker whose image a newer Dormouse has made stays asleep`() throws {
    let (victim, sum) = try torture(.traced)
    let path = try victim.sleep(service)
    let image = try readFile(path)
    var newer = image
    newer[8] = 2
    try ImageFormatTests.write(newer, to: path)
    let error = #expect(throws: HibernationError.self) { try victim.wake(service, from: path) }
    #expect(error?.aftermath == .intact && error?.reason.contains("format version 2") == true)
    #expect(fileExists(path))
    try ImageFormatTests.write(image, to: path)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "A worker killed at any moment is reported as ended, and leaves nothing in the daemon",
    arguments: Nightly.one(of: Victim.Parking.available))
  func mortal(parking: Victim.Parking) throws {
    let directory = Fixture.imagePath()
    _ = try systemCall("mkdir", on: directory) { mkdir(directory, 0o700) }
    let group = try Victim.makeGroup(for: parking)
    let answer = try Probe.run([
      "mortal", "40", directory, group?.path ?? "-", "--", try Fixture.compile("torture"), "2",
      "14", "3",
    ])
    try group?.remove(until: Deadline(in: .seconds(60)))
    #expect(answer.hasPrefix("outlived"), "\(answer)")
  }

  @Test("A worker that dies in its sleep is reported as ended, and its image is removed")
  func diesAsleep() throws {
    for parking in Nightly.one(of: Victim.Parking.available) {
      let (victim, _) = try torture(parking)
      let path = try victim.sleep(service)
      kill(victim.process.pid, SIGKILL)
      let deadline = Deadline(in: .seconds(60))
      var ended = false
      while !ended, !deadline.hasPassed {
        // The event loop does this on every SIGCHLD; each thread's end sends one.
        service.reapChildren()
        ended = try pollDescriptor(
          victim.process.pidfd.raw, for: POLLIN, until: Deadline(in: .milliseconds(20)))
      }
      #expect(ended)
      let error = #expect(throws: HibernationError.self) {
        try victim.wake(service, from: path)
      }
      #expect(error?.aftermath == .vanished)
      #expect(access(path, F_OK) != 0)
    }
  }
}
