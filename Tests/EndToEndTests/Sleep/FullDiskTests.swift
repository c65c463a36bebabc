import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Image disks that fail and recover") struct DiskTests {
  /// What happens to the directory of images, and how it is repaired.
  enum Failure: String, CaseIterable, CustomTestStringConvertible {
    case full, withoutInodes, readOnly, broken, removed, replacedByFile, forbidden

    /// The reason that `status` shows.
    var reason: String {
      switch self {
      case .full, .withoutInodes: "No space left on device"
      case .readOnly: "Read-only file system"
      case .broken: "Input/output error"
      case .removed: "No such file or directory"
      case .replacedByFile: "Not a directory"
      case .forbidden: "Permission denied"
      }
    }

    /// The error of writes that fail half-way.
    fileprivate var code: Int32? {
      switch self {
      case .full: ENOSPC
      case .broken: EIO
      default: nil
      }
    }

    static let cases = Nightly.oneOfEach(
      allCases.map { failure in
        Setting.available.filter { failure.isPossible(in: $0) }.map { (failure, $0) }
      })

    private func isPossible(in setting: Setting) -> Bool {
      switch self {
      case .withoutInodes, .readOnly: TestMachine.isRoot
      case .full, .broken: setting != .ordinaryUser
      case .removed, .replacedByFile: true
      // Permissions don't restrict root.
      case .forbidden: setting == .ordinaryUser || !TestMachine.isRoot
      }
    }

    var testDescription: String { rawValue }

    func begin(_ disk: ImageDisk) throws {
      let images = disk.images
      switch self {
      case .withoutInodes: try disk.mount("size=64m,nr_inodes=1")
      case .readOnly:
        try disk.mount("size=64m")
        try disk.mount("remount,ro,size=64m")
      case .full, .broken: _ = try Descriptor.open(disk.order, O_WRONLY | O_CREAT, mode: 0o644)
      case .removed: _ = try systemCall("rmdir", on: images) { rmdir(images) }
      case .replacedByFile:
        _ = try systemCall("rmdir", on: images) { rmdir(images) }
        _ = try Descriptor.open(images, O_WRONLY | O_CREAT, mode: 0o644)
      case .forbidden: _ = try systemCall("chmod", on: images) { chmod(images, 0o500) }
      }
    }

    func end(_ disk: ImageDisk) throws {
      let images = disk.images
      switch self {
      case .withoutInodes: try disk.mount("remount,size=64m,nr_inodes=100")
      case .readOnly: try disk.mount("remount,rw,size=64m")
      case .full, .broken: unlink(disk.order)
      case .removed: try disk.make()
      case .replacedByFile:
        unlink(images)
        try disk.make()
      case .forbidden: chmod(images, 0o700)
      }
    }
  }

  /// The directory of images, and what is mounted over it.
  final class ImageDisk {
    let images: String
    let order: String
    private let owner: (uid_t, gid_t)
    private var isMounted = false

    init(_ daemon: TestDaemon) throws {
      images = "\(daemon.state)/images"
      order = "\(daemon.scratch.path)/fail"
      var status = stat()
      _ = try systemCall("stat", on: images) { [images] in stat(images, &status) }
      owner = (status.st_uid, status.st_gid)
    }

    deinit { if isMounted { umount2(images, Int32(MNT_DETACH)) } }

    func mount(_ options: String) throws {
      let scratch = try Scratch()
      let options = options + ",mode=700,uid=\(owner.0),gid=\(owner.1)"
      let outcome = try Command(
        arguments: ["mount", "-t", "tmpfs", "-o", options, "dormouse-test", images]
      ).run(in: scratch)
      guard outcome.code == 0 else { throw TestFailure("mount: \(outcome)") }
      isMounted = true
    }

    func make() throws {
      _ = try systemCall("mkdir", on: images) { mkdir(images, 0o700) }
      _ = try systemCall("chown", on: images) { chown(images, owner.0, owner.1) }
    }
  }

  private static let anyDisk = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, max_footprint: 32MB, disk: { min_free: 0% },
        overlay: false, resume: eager }
    workers:

    """

  @Test(
    "When the image disk fails, a worker stays suspended and intact until the disk works again",
    arguments: Failure.cases)
  func writing(failure: Failure, setting: Setting) throws {
    let web = try WebWorker(megabytes: 3)
    let scratch = try Scratch()
    let daemon = try TestDaemon(
      Self.anyDisk + web.entry(setting), setting: setting, starts: false,
      wrapper: try failure.code.map { try Self.failingDisk(scratch, $0) } ?? [])
    daemon.set("FAILING_DISK", "\(daemon.scratch.path)/fail")
    try daemon.start()
    let (connection, digest) = try web.answer(under: daemon)
    let disk = try ImageDisk(daemon)

    try failure.begin(disk)
    for _ in 0..<2 {
      let outcome = try daemon.verb("hibernate", "web")
      #expect(outcome.code == 1)
      #expect(outcome.error.contains(failure.reason), "\(outcome)")
      if failure.code != nil {
        #expect(outcome.error.hasPrefix("dormouse: web could not be hibernated: "), "\(outcome)")
        #expect(outcome.error.split(separator: "\n").count == 1)
      }
      #expect(try daemon.worker("web").state == "suspended")
      #expect(try daemon.done("status", "web").contains(failure.reason))
      // The part of the image that had been written is removed.
      if failure != .removed, failure != .replacedByFile {
        #expect(try listDirectory(disk.images).isEmpty)
      }
    }
    try daemon.done("wake", "web")
    #expect(try connection.get("/digest") == digest)

    try failure.end(disk)
    try daemon.done("hibernate", "web")
    #expect(try listDirectory(disk.images) == ["web.image"])
    try daemon.done("wake", "web")
    #expect(try connection.get("/digest") == digest)
    #expect(try listDirectory(disk.images).isEmpty)
  }

  @Test(
    "A worker wakes from a disk that became read-only if its cgroup can record the resume",
    .enabled(if: TestMachine.isRoot, "only root can mount a small disk"),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func removing(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(Self.anyDisk + web.entry(setting), setting: setting)
    let (connection, digest) = try web.answer(under: daemon)
    let disk = try ImageDisk(daemon)
    try disk.mount("size=64m")
    try daemon.done("hibernate", "web")
    try disk.mount("remount,ro,size=64m")
    let outcome = try daemon.verb("wake", "web")
    if setting == .frozen {
      #expect(outcome.code == 0, "\(outcome)")
      #expect(try connection.get("/digest") == digest)
      // Only the note keeps a later daemon from restoring it.
      #expect(try listDirectory(disk.images) == ["web.image"])
    } else {
      // Without a note the next daemon would take the image for the worker's memory.
      #expect(outcome.code == 1)
      #expect(outcome.error.contains("Read-only file system"), "\(outcome)")
      #expect(try daemon.worker("web").state == "hibernated")
    }
    try disk.mount("remount,rw,size=64m")
    if setting == .frozen { try daemon.done("hibernate", "web") }
    try daemon.done("wake", "web")
    #expect(try connection.get("/digest") == digest)
    #expect(try listDirectory(disk.images).isEmpty)
  }

  private static func failingDisk(_ scratch: Scratch, _ code: Int32) throws -> [String] {
    let library = "\(scratch.path)/failing_disk.so"
    let outcome = try Command(
      arguments: [
        "cc", "-shared", "-fPIC", "-O1", "-o", library, TestMachine.fixture("failing_disk.c"),
      ]
    ).run(in: scratch)
    guard outcome.code == 0 else { throw TestFailure("cc: \(outcome)") }
    return ["env", "LD_PRELOAD=\(library)", "FAILING_DISK_ERROR=\(code)"]
  }
}
