import Control
import Glibc
import Linux
import TestSupport
import Testing

@testable import dormouse

@Suite("Files that verbs write") struct PictureFileTests {
  @Test func `A file that is replaced keeps its mode and owner`() throws {
    let scratch = try Scratch()
    let path = try scratch.write("made.yaml", "old")
    // Only root may give a file to a group that it isn't in.
    let group = geteuid() == 0 ? 1 : getegid()
    #expect(chown(path, geteuid(), group) == 0 && chmod(path, 0o660) == 0)
    try PictureFile(path).write("new")
    let status = try readStatus(of: path)
    #expect(status.st_gid == group && status.st_mode & 0o777 == 0o660)
    #expect(try readText(path) == "new")
  }

  fileprivate static var protectsLinks: Bool {
    // Without this file, the kernel has no such protection.
    geteuid() == 0 && (try? readText("/proc/sys/fs/protected_symlinks"))?.hasPrefix("1") == true
  }

  @Test(
    "A link that another user has put into a directory of all users isn't followed for root",
    .enabled(if: PictureFileTests.protectsLinks, "links of other users are followed here"))
  func plantedLink() throws {
    let scratch = try Scratch(["target": "old", "shared/file": ""])
    let shared = "\(scratch.path)/shared"
    let target = "\(scratch.path)/target"
    #expect(symlink(target, "\(shared)/link") == 0 && lchown("\(shared)/link", 65534, 65534) == 0)
    #expect(chmod(shared, 0o1777) == 0)
    #expect(throws: FileError.self) { try PictureFile("\(shared)/link").write("new") }
    #expect(try readText(target) == "old")
  }
}
