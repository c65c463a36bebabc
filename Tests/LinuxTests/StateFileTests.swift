import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Files that are replaced as a whole") struct StateFileTests {
  private typealias Step = StateFile.Step

  private let scratch: Scratch
  private let path: String
  private var partial: String { path + ".partial" }

  init() throws {
    scratch = try Scratch(["state": "old"])
    path = "\(scratch.path)/state"
  }

  private static let new = Array("new content".utf8)

  /// Replaces the file, with `fault` called before each step.
  private func replace(
    _ durability: StateFile.Durability, _ fault: @escaping StateFile.Fault
  ) throws(SystemCallError) {
    let file = try StateFile(.path(path, partial: partial), mode: 0o600, fault: fault)
    try file.write(Self.new)
    try file.commit(durability)
  }

  private func names() throws -> [String] { try listDirectory(scratch.path).sorted() }

  @Test("The target of a symbolic link is read in full, however long its path is")
  func longLink() throws {
    let target = "/" + String(repeating: "directory/", count: 100)
    #expect(symlink(target, "\(scratch.path)/link") == 0)
    #expect(readLink("\(scratch.path)/link") == target)
    #expect(readLink(path) == nil)
  }

  private func mode(of path: String) throws -> mode_t {
    var status = stat()
    _ = try systemCall("lstat", path: path) { lstat($0, &status) }
    return status.st_mode & 0o7777
  }

  @Test("The new content replaces the old at every durability, and no other file is left")
  func replacement() throws {
    for (number, durability) in StateFile.Durability.allCases.enumerated() {
      try StateFile.replace(path, with: Array("\(number)".utf8), durability: durability)
      #expect(try readText(path) == "\(number)")
      #expect(try names() == ["state"])
    }
    try StateFile.replace("\(scratch.path)/first", with: [], durability: .dataAndDirectory)
    #expect(try readFile("\(scratch.path)/first") == [])
  }

  @Test(
    "A directory is replaced by no file, and keeps its name",
    arguments: StateFile.Durability.allCases)
  func directory(durability: StateFile.Durability) throws {
    let directory = "\(scratch.path)/directory"
    #expect(mkdir(directory, 0o700) == 0)
    let error = #expect(throws: SystemCallError.self) {
      try StateFile.replace(directory, with: Self.new, durability: durability)
    }
    #expect(
      durability != .data
        || error == SystemCallError("rename", on: directory + ".partial", code: EISDIR))
    #expect(try names() == ["directory", "state"])
    #expect(try listDirectory(directory).isEmpty)
  }

  @Test func `Content that is written in pieces appears when it is complete`() throws {
    let file = try StateFile(path)
    for piece in ["a", "", "bc"] { try file.write(Array(piece.utf8)) }
    #expect(try readText(path) == "old")
    try file.commit(.none)
    #expect(try readText(path) == "abc")
    // The replacement is complete.
    #expect(throws: SystemCallError.self) { try file.write([1]) }
    #expect(throws: SystemCallError.self) { try file.commit(.none) }
    file.discard()
    #expect(try readText(path) == "abc")
  }

  @Test func `Whenever the process ends, the file has the old content or the new one`() throws {
    for durability in StateFile.Durability.allCases {
      try scratch.write("state", "old")
      var seen: [(Step, String?)] = []
      try replace(durability) { step in seen.append((step, try? readText(path))) }
      let steps: [Step] =
        switch durability {
        case .untilBoot, .none: [.create, .write, .rename]
        case .data: [.create, .write, .sync, .rename]
        case .dataAndDirectory: [.create, .write, .sync, .rename, .syncDirectory]
        }
      #expect(seen.map(\.0) == steps)
      for (step, text) in seen {
        #expect(text == (step == .syncDirectory ? "new content" : "old"), "\(step)")
      }
    }
  }

  @Test(
    "A failed step leaves the old content and no partial file; after the rename the new content",
    arguments: StateFile.Step.allCases)
  func failure(step: StateFile.Step) throws {
    let failure = SystemCallError("test", on: "\(step)", code: EIO)
    let fail: StateFile.Fault = { now throws(SystemCallError) in if now == step { throw failure } }
    #expect(throws: failure) { try replace(.dataAndDirectory, fail) }
    #expect(try readText(path) == (step == .syncDirectory ? "new content" : "old"))
    #expect(try names() == ["state"])
    // If there was no file before, there is none now.
    unlink(path)
    #expect(throws: failure) { try replace(.dataAndDirectory, fail) }
    #expect(try names() == (step == .syncDirectory ? ["state"] : []))
  }

  @Test func `After a failed write, the new content doesn't get the file's name`() throws {
    var count = 0
    let file = try StateFile(.path(path, partial: partial), mode: 0o600) {
      step throws(SystemCallError) in
      if step == .write { count += 1 }
      if count == 2 { throw SystemCallError("test", on: "it", code: EIO) }
    }
    try file.write(Self.new)
    #expect(throws: SystemCallError.self) { try file.write(Self.new) }
    #expect(throws: SystemCallError.self) { try file.write(Self.new) }
    #expect(throws: SystemCallError.self) { try file.commit(.data) }
    #expect(try readText(path) == "old")
    #expect(try names() == ["state"])
  }

  @Test(.enabled(if: geteuid() == 0, "mounting a small file system takes root"))
  func `A full disk leaves the old content, and no partial file that takes up space`() throws {
    let disk = "\(scratch.path)/disk"
    #expect(mkdir(disk, 0o700) == 0)
    try #require(mount("tmpfs", disk, "tmpfs", 0, "size=64k") == 0)
    defer { umount2(disk, Int32(MNT_DETACH)) }
    let path = disk + "/state"
    try StateFile.replace(path, with: Array("old".utf8), durability: .data)
    let large = [UInt8](repeating: 1, count: 1 << 20)
    let full = SystemCallError("write", on: path + ".partial", code: ENOSPC)
    #expect(throws: full) { try StateFile.replace(path, with: large, durability: .data) }
    #expect(try readText(path) == "old")
    #expect(try listDirectory(disk) == ["state"])
    try StateFile.replace(path, with: Array(large.prefix(40_000)), durability: .data)
    #expect(try readFile(path).count == 40_000)
  }

  @Test func `The new file has the requested mode, and not that of the old one`() throws {
    #expect(chmod(path, 0o666) == 0)
    try StateFile.replace(path, with: Self.new, durability: .none)
    #expect(try mode(of: path) == 0o600)
    let file = try StateFile(path, mode: 0o400)
    // The mode is set before the file has content.
    #expect(try mode(of: partial) == 0o400)
    try file.write(Self.new)
    try file.commit(.none)
    #expect(try mode(of: path) == 0o400)
  }

  @Test("A partial file that a killed process has left gives the new one neither content nor mode")
  func leftover() throws {
    try scratch.write("state.partial", "much longer than the new content")
    #expect(chmod(partial, 0o666) == 0)
    for durability in [StateFile.Durability.none, .untilBoot] {
      try StateFile.replace(path, with: Self.new, durability: durability)
      #expect(try readFile(path) == Self.new)
      #expect(try mode(of: path) == 0o600)
      #expect(try names() == ["state"])
      // The process was killed between the exchange of the names and the removal, so the partial
      // file has the old content.
      try scratch.write("state.partial", "old")
    }
  }

  @Test("Of two replacements at once the first fails, and the file gets no incomplete content")
  func twoAtOnce() throws {
    let busy = SystemCallError("rename", on: partial, code: EBUSY)
    for durability in StateFile.Durability.allCases {
      try scratch.write("state", "old")
      let first = try StateFile(path)
      try first.write([1])
      // For the second one, the partial file of the first is that of a killed process.
      let second = try StateFile(path)
      #expect(throws: busy) { try first.commit(durability) }
      #expect(try readText(path) == "old")
      #expect(try names() == ["state", "state.partial"])
      try second.write(Self.new)
      try second.commit(durability)
      #expect(try readFile(path) == Self.new)
      #expect(try names() == ["state"])
    }
  }

  private func replaceAndKeep(
    _ status: stat, in directory: DirectoryHandle
  ) throws(SystemCallError) {
    let file = try StateFile("state", in: directory)
    try file.keep(modeAndOwnerOf: status)
    try file.write(Self.new)
    try file.commit(.none)
  }

  @Test(
    "An ordinary user replaces another user's file, unless its group couldn't read it any more",
    .enabled(if: geteuid() == 0, "to give a file to another user takes root"))
  func otherOwner() throws {
    let directory = try DirectoryTrust(user: geteuid(), isStrict: false).open(scratch.path)
    let account = try Account(user: "65534", group: "65534")
    try #require(chown(scratch.path, 65534, 65534) == 0)
    let cases: [(group: gid_t, mode: mode_t, kept: mode_t?)] = [
      (65534, 0o660, 0o660), (0, 0o664, 0o644), (0, 0o640, nil),
    ]
    for (group, mode, kept) in cases {
      try scratch.write("state", "old")
      try #require(chown(path, 1, group) == 0 && chmod(path, mode) == 0)
      let status = try readStatus(of: path)
      let replace = { () throws(SystemCallError) in try replaceAndKeep(status, in: directory) }
      if let kept {
        try account.acting(replace)
        let new = try readStatus(of: path)
        #expect(new.st_uid == 65534 && new.st_gid == 65534 && new.st_mode & 0o7777 == kept)
      } else {
        #expect(throws: SystemCallError.self) { try account.acting(replace) }
        #expect(try readText(path) == "old")
      }
    }
  }

  @Test func `A symbolic link with the partial file's name isn't followed`() throws {
    try scratch.write("other", "untouched")
    #expect(symlink("\(scratch.path)/other", partial) == 0)
    try StateFile.replace(path, with: Self.new, durability: .none)
    #expect(try readText("\(scratch.path)/other") == "untouched")
    #expect(try readFile(path) == Self.new)
    #expect(try mode(of: path) == 0o600)
  }

  @Test
  func `A directory at the partial file's path stays, and so does the file's old content`() throws {
    #expect(mkdir(partial, 0o700) == 0)
    #expect(throws: SystemCallError.self) {
      try StateFile.replace(path, with: Self.new, durability: .none)
    }
    #expect(try readText(path) == "old")
    #expect(try names() == ["state", "state.partial"])
  }

  @Test func `The error for a missing directory names it, and the directory isn't made`() throws {
    let path = "\(scratch.path)/none/state"
    let missing = SystemCallError("open", on: path + ".partial", code: ENOENT)
    for durability in StateFile.Durability.allCases {
      #expect(throws: missing) {
        try StateFile.replace(path, with: Self.new, durability: durability)
      }
    }
    #expect(try names() == ["state"])
  }

  @Test(
    "A replacement that isn't committed leaves no partial file, after `discard` or when it is freed"
  )
  func discarded() throws {
    let file = try StateFile(path, partialSuffix: "~")
    #expect(try names() == ["state", "state~"])
    file.discard()
    #expect(try names() == ["state"])
    do { _ = try StateFile(path) }
    #expect(try names() == ["state"])
    #expect(try readText(path) == "old")
  }

  @Test(
    "A file of a directory that is held open is replaced there, whatever its path names by then")
  func heldDirectory() throws {
    let directory = try Scratch(["state": "old"])
    let opened = try DirectoryTrust(user: geteuid(), isStrict: false).open(directory.path)
    try StateFile.replace("state", in: opened, with: Self.new, durability: .dataAndDirectory)
    #expect(try readFile("\(directory.path)/state") == Self.new)
    let moved = "\(scratch.path)/moved"
    try renameFile(directory.path, to: moved)
    defer { Scratch.remove(moved) }
    try StateFile.replace("state", in: opened, with: [7], durability: .dataAndDirectory)
    #expect(try readFile("\(moved)/state") == [7])
    #expect(try listDirectory(moved) == ["state"])
    #expect(throws: SystemCallError.self) {
      try StateFile.replace("../state", in: opened, with: [8], durability: .none)
    }
    #expect(try readText(path) == "old")
  }
}
