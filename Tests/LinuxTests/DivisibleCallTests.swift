import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

/// Calls that a stop would end with a partial result.
@Suite struct DivisibleCallTests {
  private enum Number {
    #if arch(x86_64)
      static let (read, write, recvfrom, recvmsg) = (0, 1, 45, 47)
    #else
      static let (read, write, recvfrom, recvmsg) = (63, 64, 207, 212)
    #endif
  }

  private func isOne(_ number: Int, _ arguments: [UInt64], link: String? = nil) -> Bool {
    let padded = arguments + [UInt64](repeating: 0, count: 6 - arguments.count)
    return DivisibleCall.isDivisible(WaitingCall(number: Int64(number), arguments: padded)) { _ in
      link
    }
  }

  @Test func `Receiving is divisible with MSG_WAITALL only`() {
    let all = UInt64(MSG_WAITALL)
    #expect(isOne(Number.recvfrom, [3, 0x1000, 1000, all]))
    #expect(!isOne(Number.recvfrom, [3, 0x1000, 1000, 0]))
    #expect(!isOne(Number.recvfrom, [3, 0x1000, 1, all]))
    #expect(isOne(Number.recvmsg, [3, 0x1000, all]))
    #expect(!isOne(Number.read, [3, 0x1000, 1000]))
  }

  @Test func `A write is divisible unless it is a small one to a pipe`() {
    let call = Number.write
    #expect(isOne(call, [1, 0x1000, 1 << 20], link: "pipe:[1]"))
    #expect(!isOne(call, [1, 0x1000, 4096], link: "pipe:[1]"))
    #expect(isOne(call, [1, 0x1000, 4096], link: "socket:[1]"))
    #expect(!isOne(call, [1, 0x1000, 8], link: "anon_inode:[eventfd]"))
  }

  @Test func `Waiting in io_uring_enter is divisible only if it has submitted something`() {
    #expect(isOne(426, [3, 1, 1, 1]))
    #expect(!isOne(426, [3, 0, 1, 1]))
    #expect(clinux_may_be_made_again(426) == 1)
  }

  @Test func `A thread that the kernel has made for io_uring isn't in the call that started it`() {
    let line = "426 0x3 0x1 0x1 0x1 0x0 0x8"
    #expect(WaitingCall("\(line) 0x7ffc00 0x7f0011")?.number == 426)
    #expect(WaitingCall("\(line) 0x0 0x0") == nil)
  }

  @Test("A thread that is blocked in a large write is found, and one that sleeps isn't")
  func blocked() throws {
    // Nothing reads its output.
    let writer = try TestChild("dd", "if=/dev/zero", "bs=1000000", "count=1", "status=none")
    #expect(try eventually { try DivisibleCall.thread(of: writer.pid) == writer.pid })
    let sleeper = try TestChild("sleep", "61")
    let tree = try sleeper.tree()
    #expect(try DivisibleCall.thread(in: tree, until: Deadline(in: .zero)) == nil)
  }

  @Test(
    "While a shortage hides a process's calls, they aren't taken for others; forbidden, they are",
    arguments: [EMFILE, ENFILE, ENOMEM])
  func shortage(code: Int32) throws {
    let writer = try TestChild("dd", "if=/dev/zero", "bs=1000000", "count=1", "status=none")
    #expect(try eventually { try DivisibleCall.thread(of: writer.pid) == writer.pid })
    let threads = "/proc/\(writer.pid)/task"
    for path in [threads, "\(threads)/\(writer.pid)/syscall"] {
      #expect(throws: SystemCallError("open", on: path, code: code)) {
        try InjectedFault(code, of: path).during { _ = try DivisibleCall.thread(of: writer.pid) }
      }
      #expect(
        try InjectedFault(EPERM, of: path).during { try DivisibleCall.thread(of: writer.pid) }
          == nil)
    }
  }
}
