import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Threads that stop with the result of a call") struct ThreadWithResultTests {
  /// A process that reads a FIFO byte by byte, at the lowest priority of one processor. Others keep
  /// that processor busy, so that a byte wakes the reader some milliseconds before it runs.
  private final class SlowReader {
    let child: TestChild
    private let others: [TestChild]
    private let scratch: Scratch
    private let fifo: Descriptor

    init() throws {
      scratch = try Scratch()
      let path = scratch.uniquePath("fifo")
      guard mkfifo(path, 0o600) == 0 else { throw TestFailure("mkfifo") }
      let pin = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
      child = try TestChild(
        "python3", "-uc",
        pin
          + """
          os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
          fifo = os.open('\(path)', os.O_RDWR)
          print('up')
          while True: os.read(fifo, 1); print('got')
          """)
      guard try child.line() == "up" else { throw TestFailure("the reader doesn't run") }
      fifo = try Descriptor.open(path, O_RDWR)
      others = try (0..<3).map { _ in
        try TestChild("python3", "-uc", pin + "print('up')\nwhile True: pass")
      }
      for other in others { _ = try other.line() }
    }

    func write() throws { try fifo.writeAll("x") }

    /// True if the byte is still in the FIFO.
    var isUnread: Bool {
      get throws { try pollDescriptor(fifo.raw, for: POLLIN, until: Deadline(in: .zero)) }
    }

    var syscall: String {
      get throws { try readText("/proc/\(child.pid)/task/\(child.pid)/syscall") }
    }
  }

  @Test("A thread that read a byte on its way to its stop has a result, although it seems to read")
  func read() throws {
    let reader = try SlowReader()
    let wasSeen = try eventually {
      try reader.write()
      kill(reader.child.pid, SIGSTOP)
      let tree = try reader.child.stopTree()
      // A reader that was faster than the signal has written its line, and reads again.
      let isHeld =
        try !reader.isUnread && reader.syscall.hasPrefix("0 0x") && !reader.child.hasWritten
      let thread = tree.threadWithResult(until: Deadline(in: .seconds(60)))
      try tree.continueAll()
      #expect(try reader.child.line() == "got")
      if isHeld { #expect(thread == reader.child.pid) }
      return isHeld
    }
    #expect(wasSeen)
  }

  @Test func `A thread that waits has no result, and stays stopped`() throws {
    let reader = try SlowReader()
    let waits = try eventually {
      let tree = try reader.child.stopTree()
      let thread = tree.threadWithResult(until: Deadline(in: .seconds(60)))
      #expect(tree.threadOnItsWay(until: Deadline(in: .seconds(60))) == nil)
      #expect(try ProcessStat.read(reader.child.pid).state == .stopped)
      try tree.continueAll()
      return thread == nil
    }
    #expect(waits)
    try reader.write()
    #expect(try reader.child.line() == "got")
  }
}
