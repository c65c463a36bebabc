import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite struct `Unix sockets as files` {
  @Test(arguments: [0o600, 0o660, 0o666] as [mode_t])
  func `A socket's file has the mode that was asked for`(mode: mode_t) throws {
    let scratch = try Scratch()
    let path = scratch.uniquePath("sock")
    let socket = try UnixSocket.free(path, mode: mode)
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == mode)
    let error = #expect(throws: SystemCallError.self) {
      _ = try UnixSocket.free(path, mode: mode)
    }
    #expect(error?.code == EADDRINUSE)
    withExtendedLifetime(socket) {}
  }

  /// The umask applies to all threads: a directory that another thread made meanwhile couldn't be
  /// entered.
  @Test func `Opening sockets doesn't change the mode of the files that other threads make`() throws
  {
    let scratch = try Scratch()
    let isOver = Atomic(false)
    let sockets = OneTimeEvent()
    let isStarted = Thread.start(name: "sockets") {
      while !isOver.load(ordering: .relaxed) {
        // An attempt to make an invalid socket doesn't change it either.
        _ = try? UnixSocket.free(scratch.uniquePath("sock"), mode: 0o600)
      }
      sockets.raise()
    }
    try #require(isStarted)
    var narrowed = 0
    for number in 0..<2_000 {
      let path = "\(scratch.path)/directory\(number)"
      var status = stat()
      #expect(mkdir(path, 0o755) == 0 && lstat(path, &status) == 0)
      if status.st_mode & 0o700 != 0o700 { narrowed += 1 }
      rmdir(path)
    }
    isOver.store(true, ordering: .relaxed)
    sockets.wait()
    #expect(narrowed == 0)
  }
}
