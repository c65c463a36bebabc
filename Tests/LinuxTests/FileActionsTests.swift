import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Wrappers of system calls on files, descriptors and sockets") struct FileActionsTests {
  private let scratch: Scratch
  private let path: String

  init() throws {
    scratch = try Scratch(["file": "0123456789"])
    path = "\(scratch.path)/file"
  }

  @Test func `A file is discarded once, and discarding a missing file does no harm`() throws {
    #expect(fileExists(path))
    #expect(discardFile(path))
    #expect(!fileExists(path))
    #expect(!discardFile(path))
    let error = try #require(throws: SystemCallError.self) { try removeFile(path) }
    #expect(error.call == "unlink" && error.code == ENOENT && error.subject == path)
    #expect(try makeDirectory(path, mode: 0o700))
    #expect(try !makeDirectory(path, mode: 0o700), "it is there")
    discardDirectory(path)
    #expect(!fileExists(path))
  }

  @Test(
    "A status has the kind of a file, and a link's own status differs from its target's")
  func status() throws {
    let link = "\(scratch.path)/link"
    #expect(symlink(path, link) == 0)
    #expect(fileStatus(of: path)?.isRegularFile == true)
    #expect(fileStatus(of: scratch.path)?.isDirectory == true)
    #expect(fileStatus(of: "\(path)/none") == nil)
    let target = try #require(fileStatus(of: path))
    #expect(try target.isSameFile(as: #require(fileStatus(of: link))))
    let ofLink = try #require(linkStatus(of: link))
    #expect(!ofLink.isRegularFile && !target.isSameFile(as: ofLink))
    let opened = try Descriptor.open(path)
    #expect(try target.isSameFile(as: #require(opened.status)))
    #expect(opened.fileSize == 10)
    #expect(try Descriptor.open(scratch.path, O_DIRECTORY).fileSize == nil)
    #expect(throws: SystemCallError.self) { try readStatus(of: "\(path)/none") }
  }

  @Test("Bytes are read and written at an offset, and fewer are read near the end of the file")
  func places() throws {
    let file = try Descriptor.open(path, O_RDWR)
    #expect(try file.readBytes(upTo: 4, at: 2) == Array("2345".utf8))
    #expect(try file.readBytes(upTo: 4, at: 8) == Array("89".utf8))
    #expect(try file.readBytes(upTo: 4, at: 20).isEmpty)
    #expect(try Array("ab".utf8).withUnsafeBytes { try file.write($0, at: 4) } == 2)
    try file.seek(to: 3, path: path)
    #expect(try file.read(upTo: 4) == Array("3ab6".utf8))
    try file.truncate(to: 5, path: path)
    try file.setMode(0o640, path: path)
    try file.syncData(path)
    #expect(file.fileSize == 5 && file.status.map { $0.st_mode & 0o777 } == 0o640)
  }

  @Test func `Sending to a closed end is an error, without SIGPIPE`() throws {
    var pair: (Descriptor, Descriptor)? = try Descriptor.socketPair(.stream)
    let one = try #require(pair?.0)
    #expect(one.send(Array("ab".utf8), waits: true) == 2)
    #expect(try pair?.1.read(upTo: 8) == Array("ab".utf8))
    one.endOutput()
    #expect(try pair?.1.read(upTo: 8).isEmpty == true)
    pair = nil
    // A child that another test has just forked still has the other end.
    #expect(try eventually { one.send([1], waits: false) == -Int(EPIPE) })
    let error = try #require(throws: SystemCallError.self) { try one.sendAll([1], on: "it") }
    #expect(error.code == EPIPE && error.subject == "it")
  }

  @Test func `A full socket accepts no bytes, and isn't writable`() throws {
    let (one, other) = try Descriptor.socketPair(.stream)
    #expect(one.isWritable)
    while one.send([UInt8](repeating: 0, count: 4096), waits: false) > 0 {}
    #expect(one.send([1], waits: false) == -Int(EAGAIN))
    #expect(!one.isWritable)
    withExtendedLifetime(other) {}
  }

  @Test func `Signals that were blocked for a time are unblocked again`() {
    func isBlocked(_ signal: Int32) -> Bool {
      var blocked = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &blocked)
      return sigismember(&blocked, signal) == 1
    }
    // Threads of the test run may inherit a mask.
    let initially = isBlocked(SIGUSR2)
    let before = SignalMask.blocking([SIGUSR2])
    #expect(isBlocked(SIGUSR2))
    before.restore()
    #expect(isBlocked(SIGUSR2) == initially)
  }
}
