import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Images and disks that fail") struct DamageTests {
  enum Damage: String, CaseIterable, CustomTestStringConvertible {
    case missing, bytesInMiddle

    var testDescription: String { rawValue }

    func inflict(on path: String) throws {
      if self == .missing {
        unlink(path)
        return
      }
      var bytes = try readFile(path)
      // A single flipped bit in a zstd frame may change nothing of what is decompressed: a match is
      // copied from another place with the same bytes. Such an image is right.
      for offset in 0..<64 { bytes[bytes.count / 2 + offset] ^= 0x10 }
      let file = try Descriptor.open(path, O_WRONLY | O_TRUNC)
      let written = bytes.withUnsafeBytes { write(file.raw, $0.baseAddress, $0.count) }
      if written != bytes.count { throw TestFailure("write") }
    }
  }

  /// HibernationTests has other kinds of damage (`DamagedImageTests`).
  @Test(
    "A worker with a damaged image is terminated with a one-line error, and can be started again",
    arguments: Damage.allCases, Nightly.one(of: Setting.ofTestUser))
  func damagedImage(damage: Damage, setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    try daemon.done("hibernate", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try damage.inflict(on: "\(daemon.state)/images/web.image")

    let outcome = try daemon.verb("wake", "web")
    // A frozen worker is restored lazily. It may run already when a damaged page is read, and is
    // terminated then.
    let mayRunFirst = damage == .bytesInMiddle && setting == .frozen
    if !mayRunFirst || outcome.code != 0 {
      #expect(outcome.code == 1)
      #expect(outcome.error.split(separator: "\n").count == 1)
      #expect(outcome.error.hasPrefix("dormouse: web is terminated: "), "\(outcome)")
    }
    try daemon.wait("web", toBe: "terminated")
    #expect(hasEnded(pid))
    #expect(try daemon.worker("web").lastExit?.text == "ended by SIGKILL", "\(daemon.logText)")
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
    try daemon.done("start", "web")
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }

  @Test(
    "On a full disk a worker stays suspended with the reason, and later resumes unchanged",
    .enabled(if: TestMachine.isRoot, "only root can mount a small disk"))
  func fullDisk() throws {
    let disk = try SmallDisk(size: "1m")
    let web = try WebWorker(megabytes: 3)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(), state: "\(disk.path)/state")
    try daemon.wait("web", toBe: "foreground")
    let connection = try HTTPConnection(port: web.port)
    let digest = try connection.get("/digest")
    let outcome = try daemon.verb("hibernate", "web")
    #expect(outcome.code == 1)
    #expect(outcome.error.contains("hibernate.disk.min_free"), "\(outcome)")
    #expect(try daemon.worker("web").state == "suspended")
    #expect(try daemon.done("status", "web").contains("hibernate.disk.min_free"))
    try daemon.done("wake", "web")
    #expect(try connection.get("/digest") == digest)
  }

  /// A limit on the size of files makes a write fail half-way, as a disk does that other programs
  /// fill.
  @Test(
    "When writing an image fails half-way, the worker stays suspended and later resumes unchanged",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func failingWrite(setting: Setting) throws {
    let web = try WebWorker(megabytes: 3)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let connection = try HTTPConnection(port: web.port)
    let digest = try connection.get("/digest")
    let limited = try Command(arguments: ["prlimit", "--pid", "\(daemon.pid)", "--fsize=500000"])
      .run(in: daemon.scratch)
    #expect(limited.code == 0, "\(limited)")
    let outcome = try daemon.verb("hibernate", "web")
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.error.hasPrefix("dormouse: web could not be hibernated: "), "\(outcome)")
    #expect(outcome.error.split(separator: "\n").count == 1)
    #expect(try daemon.worker("web").state == "suspended")
    #expect(try listDirectory("\(daemon.state)/images").isEmpty)
    try daemon.done("wake", "web")
    #expect(try connection.get("/count") == "1")
    #expect(try connection.get("/digest") == digest)
  }
}

/// A file system in memory, unmounted with this object.
final class SmallDisk {
  private let scratch: Scratch
  let path: String

  init(size: String) throws {
    scratch = try Scratch()
    path = "\(scratch.path)/disk"
    mkdir(path, 0o700)
    guard mount("tmpfs", path, "tmpfs", 0, "size=\(size)") == 0 else {
      throw TestFailure("mount: \(String(cString: strerror(errno)))")
    }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }
}
