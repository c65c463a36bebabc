import Control
import Glibc
import TestSupport
import Testing

/// A file that is written by system calls, as a worker does.
private final class Log {
  let scratch: Scratch
  let path: String
  var directory: String { scratch.path }

  init(_ text: String) throws {
    scratch = try Scratch()
    path = "\(scratch.path)/worker.log"
    append(text)
  }

  func append(_ text: String) {
    let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    let bytes = Array(text.utf8)
    #expect(bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count)
    close(file)
  }
}

/// What the reader finds now.
private func readAll(_ reader: inout LogReader) throws -> String {
  var bytes: [UInt8] = []
  while case let chunk = try reader.read(), !chunk.isEmpty { bytes += chunk }
  return String(decoding: bytes, as: UTF8.self)
}

@Suite struct LogReading {
  @Test(
    arguments: [
      ("a\nb\nc\n", 2, "b\nc\n"), ("a\nb\nc", 2, "b\nc"), ("a\nb\n", 5, "a\nb\n"),
      ("a\nb\n", 0, ""), ("", 3, ""), ("\n\n\n", 2, "\n\n"), ("one", 1, "one"),
      ("a\nb\n", nil, "a\nb\n"),
    ] as [(String, Int?, String)])
  func `Reading the last lines gives the requested number, and counts an unfinished line`(
    text: String, count: Int?, expected: String
  ) throws {
    let log = try Log(text)
    var reader = try LogReader(LogLocation(path: log.path), lastLines: count)
    #expect(try readAll(&reader) == expected)
  }

  @Test func `Lines longer than a block are found`() throws {
    let long = String(repeating: "x", count: 200_000)
    let log = try Log("first\n\(long)\nlast\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: 2)
    #expect(try readAll(&reader) == "\(long)\nlast\n")
  }

  @Test func `Text that is written to a log later is read later`() throws {
    let log = try Log("a\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: 0)
    #expect(try readAll(&reader) == "")
    log.append("b\n")
    #expect(try readAll(&reader) == "b\n")
  }

  @Test func `A truncated log is read from its start`() throws {
    let log = try Log("a long first life\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: nil)
    #expect(try readAll(&reader) == "a long first life\n")
    #expect(truncate(log.path, 0) == 0)
    log.append("second\n")
    #expect(try readAll(&reader) == "second\n")
  }

  @Test func `A new log under the same name is read when the old one has been read to its end`()
    throws
  {
    let log = try Log("old\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: 0)
    log.append("end of old\n")
    let old = "\(log.directory)/old"
    #expect(rename(log.path, old) == 0)
    log.append("new\n")
    #expect(try readAll(&reader) == "end of old\nnew\n")
  }

  @Test func `Waiting for a log ends when the file grows`() throws {
    let log = try Log("")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: nil)
    reader.waitForChange()
    // inotify reports the change, and not the limit of 1 s, which would take that long each time.
    // On a busy machine inotify may take as long, too.
    var shortest = Duration.seconds(60)
    for _ in 0..<10 where shortest >= .milliseconds(900) {
      log.append("x")
      let before = ContinuousClock.now
      reader.waitForChange()
      shortest = min(shortest, ContinuousClock.now - before)
      #expect(try readAll(&reader) == "x")
    }
    #expect(shortest < .milliseconds(900))
  }

  @Test func `An error about a missing log names it`() {
    let error = #expect(throws: FileError.self) {
      _ = try LogReader(LogLocation(path: "/nonexistent/w.log"), lastLines: nil)
    }
    #expect(error?.description == "opening /nonexistent/w.log failed: No such file or directory")
  }

  @Test func `What a worker put in the place of its log isn't waited for`() throws {
    let scratch = try Scratch()
    let fifo = scratch.uniquePath("fifo")
    #expect(mkfifo(fifo, 0o600) == 0)
    for path in [fifo, "/dev/zero", scratch.path] {
      let error = #expect(throws: FileError.self) {
        _ = try LogReader(LogLocation(path: path), lastLines: nil)
      }
      #expect(error?.description.contains("regular file") == true)
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func `Root reads the log of another user's worker with that user's rights`() throws {
    let log = try Log("root's secret\n")
    chmod(log.directory, 0o755)
    let link = "\(log.directory)/link"
    #expect(symlink(log.path, link) == 0)
    let error = #expect(throws: FileError.self) {
      _ = try LogReader(LogLocation(path: link, user: "65534"), lastLines: nil)
    }
    #expect(error?.code == EACCES)
    var reader = try LogReader(LogLocation(path: link), lastLines: nil)
    #expect(try readAll(&reader) == "root's secret\n", "links of root's own are followed")
    #expect(chown(log.path, 65534, 65534) == 0)
    var userReader = try LogReader(LogLocation(path: link, user: "65534"), lastLines: nil)
    #expect(try readAll(&userReader) == "root's secret\n")
  }
}

/// The rotation of a log: its beginning is copied to a file of its own, and is then removed. The
/// copy is renamed only after that.
@Suite struct LogReadingOverRotations {
  private func putAside(_ log: Log, keeping remaining: String = "", aside: String) throws {
    let partial = try log.scratch.write("worker.log.1.partial", aside)
    #expect(truncate(log.path, 0) == 0)
    log.append(remaining)
    #expect(rename(partial, log.path + ".1") == 0)
  }

  @Test func `A reader finds text that was rotated into another file before it was read`() throws {
    let log = try Log("one\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: nil)
    #expect(try readAll(&reader) == "one\n")
    log.append("two\n")
    try putAside(log, aside: "one\ntwo\n")
    log.append("three\n")
    #expect(try readAll(&reader) == "two\nthree\n")
    // The log is written over the file of the first rotation again, and is longer than before.
    let long = String(repeating: "a longer line\n", count: 10_000)
    log.append("four\n")
    try putAside(log, aside: "three\nfour\n")
    log.append(long)
    #expect(try readAll(&reader) == "four\n" + long)
  }

  @Test func `Where only whole blocks are rotated, nothing is read twice`() throws {
    let log = try Log("one\ntwo\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: nil)
    #expect(try readAll(&reader) == "one\ntwo\n")
    // Everything that stays in the log has been read already.
    try putAside(log, keeping: "two\n", aside: "one\n")
    log.append("three\n")
    #expect(try readAll(&reader) == "three\n")
  }

  @Test func `A log that was renamed whole is read to its end, once`() throws {
    let log = try Log("old\n")
    var reader = try LogReader(LogLocation(path: log.path), lastLines: 0)
    log.append("end of old\n")
    #expect(rename(log.path, log.path + ".1") == 0)
    log.append("new\n")
    #expect(try readAll(&reader) == "end of old\nnew\n")
    log.append("more\n")
    #expect(try readAll(&reader) == "more\n")
  }
}
