import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

@Suite("The processes to which an image belongs") struct ImageOwnersTests {
  private let path = Fixture.imagePath()
  private let thisProcess: ProcessIdentity

  init() throws { thisProcess = try .current(of: getpid()) }

  private func write(_ processes: ProcessIdentity...) throws {
    _ = try ImageWriter(path: path).commit(
      processes: processes.map {
        ImageProcess(pid: $0.pid, startTime: $0.startTime, scratchAddress: 0, threads: [])
      }, durability: .cached)
  }

  @Test func `An image stays while one of its processes lives, and its base with it`() throws {
    try write(ProcessIdentity(pid: 1, startTime: .max), thisProcess)
    let base = ImageLayout.basePath(of: path)
    try write(base)
    #expect(ImageOwners.of(image: path) == .processes([thisProcess]))
    #expect(Hibernator.removeUnlessNeeded(path)?.contains("\(getpid())") == true)
    #expect(fileExists(path) && fileExists(base))
  }

  private func write(_ other: String) throws {
    _ = try ImageWriter(path: other).commit(processes: [], durability: .cached)
  }

  @Test("An image is removed when its processes have ended or their pids belong to others")
  func ended() throws {
    // The process has this pid, and another start time.
    try write(ProcessIdentity(pid: getpid(), startTime: thisProcess.startTime + 1))
    try write(ImageLayout.basePath(of: path))
    #expect(Hibernator.removeUnlessNeeded(path) == nil)
    #expect(!fileExists(path) && !fileExists(ImageLayout.basePath(of: path)))
    #expect(Hibernator.removeUnlessNeeded(path) == nil, "there is none any more")
  }

  @Test func `An image that can't be read stays until the machine starts again`() throws {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    try file.writeAll("not an image")
    #expect(Hibernator.removeUnlessNeeded(path) != nil)
    #expect(fileExists(path))
    // The file was changed before this boot.
    let times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
    #expect(futimens(file.raw, times) == 0)
    #expect(Hibernator.removeUnlessNeeded(path) == nil)
    #expect(!fileExists(path))
  }

  @Test("The boot of an image that can't be read is the kernel's boot id, whatever the clock says")
  func boot() throws {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    try file.writeAll("not an image")
    BootMark.set(on: file)
    // The file was changed while the machine's clock had not been set.
    let times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
    #expect(futimens(file.raw, times) == 0)
    #expect(Hibernator.removeUnlessNeeded(path) != nil)
    BootMark.set(on: file, boot: "another")
    try file.writeAll(", written now")
    #expect(Hibernator.removeUnlessNeeded(path) == nil)
    #expect(!fileExists(path))
  }

  @Test func `An empty image file is removed, because it holds no memory`() throws {
    _ = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    #expect(Hibernator.removeUnlessNeeded(path) == nil)
    #expect(!fileExists(path))
  }

  @Test func `An image that can't be read is removed with the worker that had its name`() throws {
    _ = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    #expect(Hibernator.removeUnlessNeeded(path, isUnreadableNeeded: false) == nil)
    #expect(!fileExists(path))
  }

  @Test("A worker's image doesn't replace that of another process, and may replace its own")
  func replacement() throws {
    let hibernator = Hibernator()
    let tree = try ProcessTree.discover(root: thisProcess, session: nil, cgroup: nil)
    try write(thisProcess)
    try hibernator.checkReplaceable(path, of: tree)
    let error = #expect(throws: HibernationError.self) {
      try hibernator.checkReplaceable(path, of: ProcessTree(processes: []))
    }
    #expect(error?.aftermath == .intact)
  }
}
