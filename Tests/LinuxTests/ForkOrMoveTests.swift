import CLinux
import Glibc
import Testing

@testable import Linux

/// Calls that move a process's memory or copy it, by their arguments.
struct ForkOrMoveTests {
  /// The numbers of the calls on x86-64.
  private enum Call {
    static let munmap = 11
    static let mremap = 25
    static let clone: Int64 = 56
    static let clone3: Int64 = 435
  }

  @Test(
    "A call that moves or copies memory is known, and one that shares it with its child isn't one")
  func forks() {
    #expect(clinux_may_fork_or_move(Int64(Call.mremap), 0x10000) == 1)
    #expect(clinux_may_fork_or_move(Call.clone, 0x1200011) == 1)
    #expect(clinux_may_fork_or_move(Call.clone, 0x4111) == 0, "CLONE_VM | CLONE_VFORK | SIGCHLD")
    #expect(clinux_may_fork_or_move(Call.clone3, 0) == 1)
    #expect(clinux_may_fork_or_move(Int64(Call.munmap), 0) == 0)
  }

  @Test(
    "A process that waits in another call, and one that has ended, neither fork nor move memory")
  func idle() throws {
    let child = try TestChild("sleep", "60")
    #expect(!mayForkOrMove(child.pid))
    #expect(!mayForkOrMove(1 << 22 - 1))
  }

  @Test("A call that makes memory longer adds whole pages, whatever lengths a program passes")
  func growth() {
    func growth(from before: UInt64, to after: UInt64) -> [UInt64] {
      let call = WaitingCall(
        number: Int64(Call.mremap), arguments: [16 * pageSize, before, after, 1, 0, 0])
      return call.growth.map { [$0.before, $0.added] } ?? []
    }
    #expect(growth(from: pageSize, to: 3 * pageSize) == [pageSize, 2 * pageSize])
    #expect(growth(from: 1, to: 2 * pageSize + 1) == [pageSize, 2 * pageSize])
    #expect(growth(from: pageSize + 1, to: 3 * pageSize - 1) == [2 * pageSize, pageSize])
    #expect(growth(from: 1, to: pageSize) == [])
    #expect(growth(from: 1, to: .max) == [], "it isn't a length of memory")
    #expect(growth(from: 2 * pageSize, to: 1) == [])
  }
}
