import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct LogRotationTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func contents(_ path: String) -> String { (try? readText(path)) ?? "none" }

  private func open(keep: Int) throws -> (LogDestination, WorkerLog) {
    let destination = LogDestination(path: "\(scratch.path)/log", keep: keep)
    return (destination, try WorkerLog.open(destination, limit: .max))
  }

  @Test func `After a rotation the old log and the new one together have all lines, in order`()
    throws
  {
    let (destination, log) = try open(keep: 2)
    let lines = (0..<5000).map { "line \($0)\n" }
    try log.descriptor.writeAll(lines[..<3000].joined())
    try LogRotation(destination).rotate()
    // The worker's own descriptor stays open, and isn't affected by the rotation.
    try log.descriptor.writeAll(lines[3000...].joined())
    #expect(contents(destination.path + ".1") + contents(destination.path) == lines.joined())
    #expect(contents(destination.path + ".1").hasPrefix("line 0\n"))
    #expect((log.descriptor.fileSize ?? 0) < 40_000)

    try LogRotation(destination).rotate()
    let all = [".2", ".1", ""].map { contents(destination.path + $0) }.joined()
    #expect(all == lines.joined())
    try log.descriptor.writeAll(String(repeating: "x", count: 10_000))
    try LogRotation(destination).rotate()
    #expect(access(destination.path + ".3", F_OK) != 0)
    #expect(access(destination.path + ".1.partial", F_OK) != 0)
  }

  @Test
  func `Rotation loses little of writers that never stop, and nothing where files can be cut`()
    throws
  {
    let (destination, log) = try open(keep: 100)
    // Only a file system that can't remove a file's beginning can lose output here.
    try log.descriptor.writeAll(String(repeating: "-", count: 8191) + "\n")
    let cuts = canRemoveBeginning(log.descriptor)
    let script = """
      import os
      for n in range(40000): os.write(1, b'line %06d\\n' % n)
      """
    let null = try Descriptor.open("/dev/null")
    let python = try #require(resolveExecutable("python3", path: "/usr/local/bin:/usr/bin:/bin"))
    let writer = try spawn(
      SpawnRequest(
        path: python, arguments: ["python3", "-c", script], environment: [:], directory: "/",
        input: null.raw, output: log.descriptor.raw, error: log.descriptor.raw))
    for _ in 0..<20 {
      // A log of less than a block is truncated. On a busy machine the writer may not have run
      // since.
      if (log.descriptor.fileSize ?? 0) > 8192 { try LogRotation(destination).rotate() }
      if try pollDescriptor(writer.pidfd.raw, for: POLLIN, until: Deadline(in: .milliseconds(10))) {
        break
      }
    }
    waitpid(writer.pid, nil, 0)
    let names = (1...30).reversed().map { "\(destination.path).\($0)" } + [destination.path]
    let text = names.map { (try? readText($0)) ?? "" }.joined()
    let numbers = text.split(separator: "\n").compactMap { line in
      line.hasPrefix("line ") ? Int(line.dropFirst(5)) : nil
    }
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    if cuts { #expect(numbers.count == 40_000) } else { #expect(numbers.count > 20_000) }
  }

  /// Tries it on the file itself: no interface reports what the file system can do.
  private func canRemoveBeginning(_ log: Descriptor) -> Bool {
    let path = "/proc/self/fd/\(log.raw)"
    guard let file = try? Descriptor.open(path, O_RDWR) else { return false }
    return LogRotation.removeBeginning(of: file, 4096)
  }

  @Test func `Rotating a log with a huge hole copies no hole`() throws {
    let (destination, log) = try open(keep: 1)
    try log.descriptor.writeAll("begin\n")
    #expect(ftruncate(log.descriptor.raw, 4_000_000_000) == 0)
    try log.descriptor.writeAll("the end\n")
    try LogRotation(destination, limit: 1 << 20).rotateIfTooLarge()
    var status = stat()
    // The copy may have the size of the log, but not as many blocks.
    #expect(stat(destination.path + ".1", &status) == 0)
    #expect(Int64(status.st_blocks) * 512 <= 2 << 20, "\(status.st_blocks) blocks")
    #expect((log.descriptor.fileSize ?? .max) < 1 << 20)
    let aside = try Descriptor.open(destination.path + ".1")
    let start = max(0, Int64(status.st_size) - 100)
    #expect(lseek(aside.raw, off_t(start), SEEK_SET) >= 0)
    let content =
      String(decoding: try aside.read(upTo: 100), as: UTF8.self) + contents(destination.path)
    #expect(content.contains("the end\n"))
  }

  @Test func `Of a log of more than twice its limit only the last part is copied`() throws {
    let (destination, log) = try open(keep: 1)
    let line = "a line of thirty-two characters\n"
    try log.descriptor.writeAll(String(repeating: line, count: 4 << 15))
    // The log is four times as large as the limit.
    try LogRotation(destination, limit: 1 << 20).rotateIfTooLarge()
    var status = stat()
    #expect(stat(destination.path + ".1", &status) == 0)
    #expect(Int64(status.st_blocks) * 512 <= (1 << 20) + (64 << 10))
    // An offset in the log is the same offset in the copy, for readers that follow.
    let text = contents(destination.path + ".1") + contents(destination.path)
    #expect(text.utf8.count == 4 << 20)
    #expect(text.hasSuffix(String(repeating: line, count: 1000)))
  }

  @Test func `A log under its limit, a FIFO and a missing log are left unchanged by rotation`()
    throws
  {
    let destination = LogDestination(path: "\(scratch.path)/log", keep: 1)
    try LogRotation(destination, limit: 0).rotateIfTooLarge()
    #expect(mkfifo(destination.path, 0o600) == 0)
    try LogRotation(destination, limit: 0).rotateIfTooLarge()
    unlink(destination.path)
    try WorkerLog.open(destination, limit: .max).descriptor.writeAll("little\n")
    try LogRotation(destination, limit: 100).rotateIfTooLarge()
    #expect(try listDirectory(scratch.path) == ["log"])
    #expect(contents(destination.path) == "little\n")
  }

  @Test func `A log that two workers share isn't rotated twice at the same time`() throws {
    let (destination, log) = try open(keep: 2)
    try log.descriptor.writeAll("the first worker's and the second one's\n")
    let status = try log.descriptor.readStatus()
    let file = [UInt64(status.st_dev), UInt64(status.st_ino)]
    let rotation = LogRotation(destination, limit: 30)
    // The rotation of the other worker's log is under way.
    #expect(LogRotation.beginRotation(of: file))
    #expect(try !rotation.rotateIfTooLarge())
    #expect(try listDirectory(scratch.path) == ["log"])
    LogRotation.endRotation(of: file)
    #expect(try rotation.rotateIfTooLarge())
    #expect(contents(destination.path + ".1") == "the first worker's and the second one's\n")
    #expect(try !rotation.rotateIfTooLarge())
    #expect(LogRotation.beginRotation(of: file), "the rotation has ended")
    LogRotation.endRotation(of: file)
  }

  @Test func `A rotation that keeps no files empties the log`() throws {
    let (destination, log) = try open(keep: 0)
    try log.descriptor.writeAll("much")
    try LogRotation(destination).rotate()
    #expect(contents(destination.path) == "")
    #expect(try listDirectory(scratch.path) == ["log"])
  }

  @Test func `A rotation keeps the copy that a killed daemon left`() throws {
    let (destination, log) = try open(keep: 3)
    try Descriptor.open(destination.path + ".1.partial", O_WRONLY | O_CREAT, mode: 0o600)
      .writeAll("left\n")
    try log.descriptor.writeAll("new\n")
    try LogRotation(destination).rotate()
    #expect(contents(destination.path + ".2") == "left\n")
    #expect(contents(destination.path + ".1") == "new\n")
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func `A log in a user's directory is opened with that user's rights`() throws {
    chmod(scratch.path, 0o755)
    let secret = "\(scratch.path)/secret"
    try Descriptor.open(secret, O_WRONLY | O_CREAT, mode: 0o600).writeAll("root's")
    let home = "\(scratch.path)/home"
    #expect(mkdir(home, 0o755) == 0 && chown(home, 65534, 65534) == 0)
    let other = try Account(user: "65534", group: "65534")
    #expect(symlink(secret, "\(home)/log") == 0)
    let linked = LogDestination(path: "\(home)/log", isPathConfigured: true, account: other)
    let error = #expect(throws: SystemCallError.self) {
      _ = try WorkerLog.open(linked, limit: .max)
    }
    #expect(error?.code == EACCES)
    #expect(contents(secret) == "root's")
    unlink("\(home)/log")
    let log = try WorkerLog.open(linked, limit: .max)
    try log.descriptor.writeAll("its own\n")
    try LogRotation(linked).rotate()
    var status = stat()
    #expect(stat("\(home)/log.1", &status) == 0 && status.st_uid == 65534)
  }
}
