import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Bases that were changed or removed.
@Suite(.serialized)
struct BaseDamageTests {
  enum Harm: String, CaseIterable { case removed, truncated, flipped, foreign }

  let service = HibernationService()

  private func victim(_ path: String) throws -> Victim {
    let victim = try Victim(ready: "layers", "256", parking: .traced)
    try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    _ = try victim.ask("change 5 20")
    return victim
  }

  private func harm(_ base: String, _ harm: Harm) throws {
    var bytes = try readFile(base)
    unlink(base)
    switch harm {
    case .removed: return
    case .truncated: bytes.removeLast(100)
    // The damage is in the index, so that it is detected when the base is opened.
    case .flipped: bytes[bytes.count - 60] ^= 0x55
    case .foreign: bytes = try readFile(try ImageFormatTests.image(chunks: 2))
    }
    try ImageFormatTests.write(bytes, to: base)
  }

  @Test(
    "After damage to a base while the worker runs, the next image is complete and nothing is lost",
    arguments: Harm.allCases)
  func awake(harm: Harm) throws {
    let path = Fixture.imagePath()
    let victim = try victim(path)
    try self.harm(path + ".base", harm)
    let slept = try victim.nap(service, at: path)
    #expect(slept.unchanged == 0)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test(
    "The daemon that holds a base open resumes its worker even if the base's file is replaced",
    arguments: Harm.allCases)
  func asleep(harm: Harm) throws {
    let path = Fixture.imagePath()
    let victim = try victim(path)
    #expect(try victim.nap(service, at: path).unchanged > 0)
    try self.harm(path + ".base", harm)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
    // The next image doesn't use that base.
    #expect(try victim.nap(service, at: path).unchanged == 0)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test("A later daemon doesn't resume a worker whose base was harmed", arguments: Harm.allCases)
  func afterwards(harm: Harm) throws {
    let path = Fixture.imagePath()
    let victim = try victim(path)
    #expect(try victim.nap(service, at: path).unchanged > 0)
    let base = try readFile(path + ".base")
    try self.harm(path + ".base", harm)
    let error = #expect(throws: HibernationError.self) {
      try victim.wake(HibernationService(), from: path)
    }
    #expect(error?.aftermath == .unverifiable)
    #expect(throws: ImageError.self) { try ImageReader(path: path) }
    unlink(path + ".base")
    try ImageFormatTests.write(base, to: path + ".base")
    try ImageReader(path: path).verify()
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test func `Damage to a base's pages is detected at the latest when they are read`() throws {
    let path = Fixture.imagePath()
    let victim = try victim(path)
    var bytes = try readFile(path + ".base")
    for offset in stride(from: 200, to: bytes.count - 4000, by: 997) { bytes[offset] ^= 0x55 }
    let file = try Descriptor.open(path + ".base", O_WRONLY)
    try bytes.withUnsafeBytes { try file.writeAll($0) }
    // A comparison of pages detects it, and then all pages are written; otherwise the worker must
    // not run.
    var features = KernelFeatures.detect()
    features.writeTracking = false
    let slept = try victim.nap(service, at: path)
    if slept.unchanged > 0 {
      let error = #expect(throws: HibernationError.self) {
        try victim.wake(service, from: path)
      }
      #expect(error?.aftermath == .unverifiable)
    } else {
      try victim.rise(service, from: path)
      #expect(try victim.ask("verify") == "same")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "mounting a small file system takes root"))
  func `A full disk leaves the worker as it was, and its base is removed to free space`() throws {
    let disk = Fixture.imagePath()
    _ = try systemCall("mkdir", on: disk) { mkdir(disk, 0o700) }
    let size = "size=\(1024 * pageSize)"
    try #require(try Fixture.run(["mount", "-t", "tmpfs", "-o", size, "dormouse-test", disk]) == 0)
    defer { _ = try? Fixture.run(["umount", disk]) }
    let path = disk + "/image"
    let victim = try victim(path)
    // Another file fills the disk except a few pages.
    var usage = statvfs()
    _ = statvfs(disk, &usage)
    let parking = Int(usage.f_bavail) * Int(usage.f_frsize) - 2 * Int(pageSize)
    try ImageFormatTests.write([UInt8](repeating: 1, count: parking), to: disk + "/other")
    _ = try victim.ask("change 9 60")
    let error = try victim.refusal(service, at: path, overlay: true)
    #expect(error.description.contains("No space left on device"))
    #expect(error.aftermath == .intact)
    #expect(try listDirectory(disk) == ["other"])
    unlink(disk + "/other")
    #expect(try victim.nap(service, at: path).unchanged == 0)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }
}
