import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Disks that accept data and fail to write it later.
@Suite(
  .serialized, .enabled(if: FailingDevice.isPossible, "takes root, loop devices and mkfs.ext4"))
struct DurabilityTests {
  let service = HibernationService()

  @Test(
    "A disk that fails while the image is written to it leaves the worker with all of its memory",
    arguments: Nightly.one(of: Victim.Parking.available))
  func failingWriteback(parking: Victim.Parking) throws {
    guard let device = try FailingDevice() else {
      return notTestedHere("the failing disk can't be set up")
    }
    // The program has random numbers, which can't be compressed.
    let victim = try Victim(ready: "torture", "8", "16", "5", parking: parking)
    let sum = try victim.ask("sum")
    let before = try victim.anonymousMemory()
    let path = device.directory + "/image"

    try device.fill()
    let error = try victim.refusal(service, at: path)
    #expect(error.aftermath == .intact)
    #expect(error.phase == .committing)
    // The kernel returns EIO or ENOSPC.
    #expect(error.description.hasPrefix("fdatasync \(path).partial: "), "\(error)")
    #expect(try victim.isSuspended)
    #expect(try victim.anonymousMemory() >= before)
    #expect(access(path, F_OK) != 0)
    #expect(access(path + ".partial", F_OK) != 0)

    let elsewhere = try victim.sleep(service)
    try victim.wake(service, from: elsewhere)
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }
}

/// An ext4 on a loop device, on a file of a small tmpfs: it accepts writes into the page cache, and
/// has no room for them on the disk.
final class FailingDevice {
  let directory: String
  private let memory: String
  private let loop: String

  static let isPossible =
    geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0
    && ["losetup", "mkfs.ext4", "mount", "umount"].allSatisfy { find($0) != nil }

  private static func find(_ name: String) -> String? {
    resolveExecutable(name, path: "/usr/sbin:/sbin:" + Program.path)
  }

  private static func run(_ command: String...) throws -> (status: Int32, output: String) {
    let output = Fixture.imagePath()
    let file = try Descriptor.open(output, O_RDWR | O_CREAT, mode: 0o600)
    let status = try Fixture.run(
      [try #require(find(command[0]))] + command.dropFirst(),
      environment: ["PATH": "/usr/sbin:/sbin:" + Program.path], output: file.raw)
    let text = try readText(output)
    return (status, text.split(separator: "\n").first.map(String.init) ?? "")
  }

  /// It is `nil` if this machine provides no loop device.
  init?() throws {
    memory = Fixture.imagePath()
    directory = Fixture.imagePath()
    for path in [memory, directory] { _ = try systemCall("mkdir", on: path) { mkdir(path, 0o700) } }
    try #require(
      try Self.run("mount", "-t", "tmpfs", "-o", "size=4m", "dormouse-test", memory).status == 0)
    let file = memory + "/disk"
    do {
      let disk = try Descriptor.open(file, O_RDWR | O_CREAT, mode: 0o600)
      _ = try systemCall("ftruncate", on: file) { ftruncate(disk.raw, 64 << 20) }
    }
    let attached = try Self.run("losetup", "-f", "--show", file)
    loop = attached.output
    guard attached.status == 0, loop.hasPrefix("/dev/") else { return nil }
    let options = "^has_journal"
    guard try Self.run("mkfs.ext4", "-q", "-O", options, "-m", "0", loop).status == 0,
      try Self.run("mount", "-t", "ext4", loop, directory).status == 0
    else { return nil }
  }

  deinit {
    umount2(directory, 0)
    if loop.hasPrefix("/dev/") { _ = try? Self.run("losetup", "-d", loop) }
    umount2(memory, Int32(MNT_DETACH))
    rmdir(directory)
    rmdir(memory)
  }

  /// Fills the disk: from here on no more data can be written to it.
  func fill() throws {
    sync()
    let filler = try Descriptor.open(memory + "/filler", O_RDWR | O_CREAT, mode: 0o600)
    let block = [UInt8](repeating: 1, count: 4096)
    while write(filler.raw, block, block.count) > 0 {}
  }
}

/// The pages of an image in the page cache.
@Suite(.serialized)
struct ImageCacheTests {
  let service = HibernationService()

  @Test func `While memory is short, an image on the disk doesn't stay in the page cache`() throws {
    let path = Fixture.imagePath()
    let victim = try Victim(ready: "torture", "4", "14", "5")
    let sum = try victim.ask("sum")
    try victim.suspend()
    try service.hibernate(
      HibernationRequest(victim.target, to: path, storage: ImageStorage(dropsCache: true)))
    guard try !Self.isInMemory(path) else {
      return notTestedHere("images are on a file system in memory")
    }
    // The header, which has changed since, may stay.
    #expect(try Self.cachedBytes(of: path) <= 64 << 10)
    // After the image is read again, it is in the cache again, until pressure rises.
    _ = try readFile(path)
    #expect(try Self.cachedBytes(of: path) > 1 << 20)
    service.dropFromCache(images: [path])
    // Another thread drops it.
    let deadline = Deadline(in: .seconds(60))
    while try Self.cachedBytes(of: path) > 64 << 10, !deadline.hasPassed { usleep(5000) }
    #expect(try Self.cachedBytes(of: path) <= 64 << 10)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  private static func cachedBytes(of path: String) throws -> Int {
    let file = try Descriptor.open(path)
    let length = Int(lseek(file.raw, 0, SEEK_END))
    let area = try #require(mmap(nil, length, PROT_READ, MAP_SHARED, file.raw, 0))
    try #require(area != MAP_FAILED)
    defer { munmap(area, length) }
    let size = Int(pageSize)
    var pages = [UInt8](repeating: 0, count: (length + size - 1) / size)
    _ = try systemCall("mincore", on: path) { mincore(area, length, &pages) }
    return pages.count { $0 & 1 == 1 } * size
  }

  /// True if the file is on tmpfs: there the page cache is the only copy.
  private static func isInMemory(_ path: String) throws -> Bool {
    try Fixture.run(["sh", "-c", "[ \"$(stat -f -c %T \(path))\" = tmpfs ]"]) == 0
  }
}
