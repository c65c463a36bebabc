import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Trims of running workers of which a thread is in a call that a stop would end early.
@Suite(.serialized)
struct DivisibleTrimTests {
  /// A thread writes 1 MB to a socket that is read after a line of input. Then the number of bytes
  /// that were written by the one call is printed.
  private static let program = """
    import os, socket, sys, threading
    memory = bytearray(os.urandom(8 << 20))
    near, far = socket.socketpair()
    counts = []
    def write():
        counts.append(os.write(near.fileno(), bytes(1 << 20)))
    def read():
        while far.recv(65536): pass
    writer = threading.Thread(target=write)
    writer.start()
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=read, daemon=True).start()
    writer.join()
    print(counts[0], flush=True)
    sys.stdin.readline()
    """

  private func check(_ parking: Victim.Parking, trim: (HibernationTarget, String) throws -> Void)
    throws
  {
    let victim = try Victim(ready: ["python3", "-c", Self.program], parking: parking)
    let pid = victim.process.pid
    try #require(try eventually { try DivisibleCall.thread(of: pid) != nil })
    let error = #expect(throws: HibernationError.self) {
      try trim(victim.target, Fixture.imagePath())
    }
    #expect(error?.aftermath == .intact)
    #expect(error?.reason.contains("in a call that a stop would end early") == true)
    #expect(try victim.ask("read") == "\(1 << 20)")
  }

  @Test("A trim by userfaultfd doesn't end a blocked write early", .needsUserfaults)
  func userfaultfd() throws {
    let service = HibernationService()
    try check(.frozen) { target, path in _ = try service.trim(target, to: path) }
  }

  @Test(
    "A trim by borrowed threads doesn't end a blocked write early",
    .enabled(if: TestSwap.isAvailable, "no swap can be made here"))
  func borrowedThreads() throws {
    let service = HibernationService()
    try check(.traced) { target, path in
      _ = try service.wait { (h) throws(HibernationError) in
        h.trimMechanisms = [.borrowedThread]
        return try h.trim(
          TrimRequest(
            HibernationRequest(target, to: path), record: path + ".trim", mechanism: .swap))
      }
    }
  }
}
