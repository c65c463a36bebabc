import Glibc
import Linux
import TestSupport
import Testing

extension Scratch {
  fileprivate func directory(_ name: String, mode: mode_t = 0o755, owner: uid_t? = nil) throws
    -> String
  {
    let path = "\(path)/\(name)"
    guard mkdir(path, 0o700) == 0, chmod(path, mode) == 0 else {
      throw TestFailure("mkdir \(path)")
    }
    if let owner {
      guard chown(path, owner, owner) == 0 else { throw TestFailure("chown \(path)") }
    }
    return path
  }

  fileprivate func file(_ path: String, _ text: String) throws {
    try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600).writeAll(text)
  }
}

private let stranger: uid_t = 12345
private let isRoot = geteuid() == 0

@Suite("Directories that another user could replace")
struct DirectoryTrustTests {
  private let strict = DirectoryTrust(user: geteuid(), isStrict: true)
  private let lenient = DirectoryTrust(user: geteuid(), isStrict: false)

  private func flaw(
    _ path: String, _ trust: DirectoryTrust, as last: DirectoryTrust.Sharing = .exclusive
  ) -> (path: String, flaw: DirectoryTrustError.Flaw)? {
    do throws(DirectoryTrustError) {
      _ = try trust.open(path, as: last)
      return nil
    } catch {
      guard case .untrusted(let path, let flaw) = error else {
        Issue.record("\(error)")
        return nil
      }
      return (path, flaw)
    }
  }

  @Test("A path through trusted directories is opened, and missing directories are made private")
  func makes() throws {
    let scratch = try Scratch()
    let handle = try strict.open("\(scratch.path)/a//./b/", making: 0o700)
    #expect(try handle.status().st_mode & 0o7777 == 0o700)
    #expect(throws: DirectoryTrustError.self) { try strict.open("\(scratch.path)/none") }
    #expect(throws: DirectoryTrustError.self) { try strict.open("relative") }
  }

  @Test("A directory above the last one to which others may write is refused for root")
  func writableAncestor() throws {
    let scratch = try Scratch()
    let open = try scratch.directory("open", mode: 0o777)
    try #require(mkdir("\(open)/state", 0o700) == 0)
    let refusal = try #require(flaw("\(open)/state", strict))
    #expect(refusal.path == open)
    #expect("\(refusal.flaw)".contains("other users may write to it (mode 0777"))
    // An ordinary user's daemon checks the last directory only.
    #expect(flaw("\(open)/state", lenient) == nil)
    // With the sticky bit, other users can't replace files in it.
    chmod(open, 0o1777)
    #expect(flaw("\(open)/state", strict) == nil)
    #expect(flaw(open, strict, as: .shared) == nil)
    #expect(flaw(open, strict, as: .exclusive) != nil)
    // A group can have several users.
    chmod(open, 0o775)
    #expect(flaw("\(open)/state", strict) != nil)
  }

  @Test(.enabled(if: isRoot, "only root can give directories away"))
  func `A directory above the last one that belongs to another user is refused for root`() throws {
    let scratch = try Scratch()
    let theirs = try scratch.directory("theirs", owner: stranger)
    try #require(mkdir("\(theirs)/state", 0o700) == 0)
    let refusal = try #require(flaw("\(theirs)/state", strict))
    #expect(refusal.path == theirs)
    #expect("\(refusal.flaw)".contains("user \(stranger) owns it (mode 0755)"))
    #expect(flaw("\(theirs)/state", lenient) == nil)
    #expect(flaw(theirs, lenient) != nil)
    // No directory is made in it either.
    #expect(throws: DirectoryTrustError.self) { try strict.open("\(theirs)/new", making: 0o700) }
    #expect(access("\(theirs)/new", F_OK) != 0)
    // A user that doesn't exist in this user namespace can't change anything there.
    let namespaced = DirectoryTrust(user: geteuid(), isStrict: true, outsider: stranger)
    #expect(flaw("\(theirs)/state", namespaced) == nil)
  }

  @Test("Links that no other user could have made are followed, and their targets are checked, too")
  func links() throws {
    let scratch = try Scratch()
    let open = try scratch.directory("open", mode: 0o777)
    let safe = try scratch.directory("safe")
    try #require(mkdir("\(open)/state", 0o700) == 0 && mkdir("\(safe)/state", 0o700) == 0)
    try #require(symlink("safe", "\(scratch.path)/relative") == 0)
    try #require(symlink("\(safe)/../safe/state", "\(scratch.path)/absolute") == 0)
    try #require(symlink(open, "\(scratch.path)/astray") == 0)
    try #require(symlink("loop", "\(scratch.path)/loop") == 0)
    #expect(flaw("\(scratch.path)/relative/state", strict) == nil)
    #expect(flaw("\(scratch.path)/absolute", strict) == nil)
    #expect(flaw("\(scratch.path)/astray/state", strict)?.path == open)
    #expect(throws: DirectoryTrustError.self) { try strict.open("\(scratch.path)/loop/state") }
    if isRoot {
      // In a sticky directory, the link's owner could replace it.
      try #require(lchown("\(scratch.path)/relative", stranger, stranger) == 0)
      #expect(flaw("\(scratch.path)/relative/state", strict)?.path == "\(scratch.path)/relative")
    }
    // A file isn't accepted as a directory.
    try scratch.file("\(safe)/file", "")
    #expect(throws: DirectoryTrustError.self) { try strict.open("\(safe)/file/state") }
  }

  @Test("A handle's operations happen in the directory that was opened, whatever is at its path")
  func exchange() throws {
    let scratch = try Scratch()
    let victim = try scratch.directory("victim", mode: 0o755)
    try scratch.file("\(victim)/socket", "precious")
    let directory = try scratch.directory("place", mode: 0o700)
    try scratch.file("\(directory)/socket", "ours")
    let handle = try strict.open(directory)
    try #require(rename(directory, "\(scratch.path)/away") == 0)
    try #require(symlink(victim, directory) == 0)

    try handle.setMode(0o711)
    try handle.makeDirectory("inner", mode: 0o700)
    #expect(try handle.makeDirectory("inner", mode: 0o700) == false)
    try handle.rename("socket", to: "other")
    try handle.setOwner(of: "other", user: geteuid(), group: getegid())
    #expect(try handle.status(of: "other").st_size == 4)
    try handle.remove("other")
    var status = stat()
    #expect(stat(victim, &status) == 0 && status.st_mode & 0o777 == 0o755)
    #expect(try listDirectory(victim) == ["socket"])
    #expect(try readText("\(victim)/socket") == "precious")
    #expect(try listDirectory("\(scratch.path)/away") == ["inner"])
  }

  @Test func `A handle follows no link and accepts no path`() throws {
    let scratch = try Scratch()
    let directory = try scratch.directory("place", mode: 0o700)
    try scratch.file("\(scratch.path)/victim", "precious")
    try #require(symlink("../victim", "\(directory)/link") == 0)
    let handle = try strict.open(directory)
    #expect(throws: SystemCallError.self) { try handle.open("link", O_WRONLY | O_TRUNC) }
    #expect(throws: SystemCallError.self) { try handle.openDirectory("link") }
    for name in ["", ".", "..", "../victim", "a/b", "/etc", "a\0b"] {
      #expect(throws: SystemCallError.self) {
        try handle.open(name, O_RDONLY | O_CREAT, mode: 0o600)
      }
    }
    #expect(try handle.status(of: "link").st_mode & S_IFMT == S_IFLNK)
    try handle.remove("link")
    #expect(try readText("\(scratch.path)/victim") == "precious")
  }
}
