import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// What the kernel does with memory that isn't in RAM because its worker was trimmed by
/// userfaultfd. Each test has a program of its own, which tries one thing and knows what its memory
/// must have.
@Suite(.serialized, .needsUserfaults)
struct TrimKernelTests {
  let service = HibernationService()

  /// A case of one of the programs in Tests/Fixtures.
  struct Case: Sendable, CustomTestStringConvertible {
    var program: String
    var name: String

    var testDescription: String { name }

    static func all(_ program: String, _ names: [String]) -> [Case] {
      names.map { Case(program: program, name: $0) }
    }
  }

  @Test(
    "A system call that uses missing memory waits for it, and has its ordinary result",
    arguments: Case.all(
      "missing_calls",
      [
        "use", "read_pipe", "write_pipe", "use_socket", "use_cached_file", "use_direct_file",
        "wake_futex", "use_futex", "wait_for_events", "signal_on_stack", "signal_in_thread", "lock",
        "advise", "write_times",
      ]))
  func calls(test: Case) throws { try check(test) }

  @Test(
    "Programs are started from missing memory, and threads are started and joined",
    arguments: Case.all(
      "missing_threads",
      [
        "exec_in_vfork", "spawn_one", "spawn_many", "write_thread_numbers", "join",
        "unlock_mutex",
        "alarm_while_using", "alarm_while_reading", "close_all",
      ]))
  func threads(test: Case) throws { try check(test) }

  /// The kernel waits for no page when a thread ends.
  @Test(
    "A thread that ends can't clear its number, nor release a robust mutex, in missing memory",
    arguments: Case.all("missing_threads", ["clear_thread_number", "leave_mutex"]))
  func endingThreads(test: Case) throws { try check(test) }

  /// glibc has always used the page just before, in user mode.
  @Test(
    "FUTEX_TRYLOCK_PI and FUTEX_WAKE_OP fail with EFAULT if they are the first to use a page",
    arguments: Case.all("missing_calls", ["change_futex"]))
  func privateFutexes(test: Case) throws { try check(test) }

  @Test(
    "Memory that is dropped, unmapped or protected while it is missing has the right contents",
    arguments: Case.all(
      "missing_changes",
      [
        "drop", "dropped_early", "free_lazily", "unmap", "protect", "shrink_heap",
        "drop_one_often", "drop_many_often", "churn_in_threads",
      ]))
  func changes(test: Case) throws { try check(test) }

  @Test(
    "Code, a deep stack and huge pages have the right contents while they come back",
    arguments: Case.all("missing_kinds", ["execute", "deepen", "check_huge", "drop_huge"]))
  func kinds(test: Case) throws { try check(test) }

  @Test(
    "Memory that is moved or grows while it is missing has the right contents",
    arguments: Case.all(
      "missing_moves",
      [
        "move", "grow", "grow_locked", "move_over", "move_keeping", "move_shortened",
        "resize_block",
      ]))
  func moves(test: Case) throws { try check(test) }

  @Test("Pages on both sides of the border of two mappings come back at each further trim")
  func border() throws {
    let worker = try Worker(Case(program: "missing_moves", name: "use_border"), service)
    for _ in 1...4 {
      try worker.trim()
      try #require(try worker.victim.ask("run") == "right")
    }
    try worker.finish()
  }

  @Test(
    "A guard region in missing memory stays, and what it has replaced is empty when it is removed",
    arguments: Case.all("missing_changes", ["guarded_early", "guard", "guard_amid_drops"]))
  func guards(test: Case) throws { try check(test) }

  /// The kernel sends no message about guard regions (MADV_GUARD_INSTALL).
  @Test(
    "What a guard region has replaced isn't empty if it is removed before the memory is needed",
    arguments: Case.all("missing_changes", ["guard_briefly"]))
  func briefGuards(test: Case) throws { try check(test) }

  @Test(
    "A trimmed program that forks stays trimmed, and it and its children see the same memory",
    arguments: Case.all(
      "missing_forks",
      [
        "fork", "fork_twice", "fork_often", "fork_100_times", "fork_in_threads",
        "fork_while_waiting", "fork_while_unmapping", "fork_and_change", "fork_wiped",
      ]) + Case.all("missing_early_forks", ["fork_while_growing"]))
  func forks(test: Case) throws { try check(test) }

  @Test("From outside, process_vm_readv gets missing memory, and /proc/PID/mem fails with EIO")
  func fromOutside() throws {
    let worker = try Worker(Case(program: "missing_calls", name: "use"), service)
    try worker.trim()
    let address = try #require(worker.address)
    let pid = worker.victim.process.pid
    let memory = try ProcessMemory(pid: pid)
    #expect(try readText("/proc/\(pid)/cmdline").contains("missing_calls"))
    let (first, second) = (address + 1 << 20, address + 2 << 20)
    let error = #expect(throws: SystemCallError.self) {
      try memory.readBytes(at: first, count: 8)
    }
    #expect(error?.code == EIO)
    var page = [UInt8](repeating: 0, count: Int(pageSize))
    let count = try page.withUnsafeMutableBytes {
      try [PageRange(address: second, length: pageSize)].readDirectly(from: pid, into: $0)
    }
    #expect(count == page.count)
    // It is in RAM now.
    #expect(try memory.readBytes(at: second, count: page.count) == page)
    #expect(page.contains { $0 != 0 })
    try worker.finish()
  }

  /// - Parameter test: what its program tries.
  private func check(_ test: Case) throws {
    let worker = try Worker(test, service)
    try worker.run()
    #expect(worker.isTrimmed)
    #expect(try worker.victim.ask("check") == "whole")
    try worker.finish()
    #expect(worker.losses.isEmpty)
  }
}

extension TrimKernelTests {
  /// A running case.
  final class Worker {
    let victim: Victim
    let image = Fixture.imagePath()
    /// The address of the region whose contents the program knows.
    let address: UInt64?
    private let service: HibernationService
    private let lost = Losses()

    private final class Losses: Sendable {
      let reasons = Mutex<[String]>([])
    }

    init(_ test: Case, _ service: HibernationService) throws {
      self.service = service
      // The messages about them fill the journal at least once.
      let rounds = Nightly.rounds(2500, of: 10_000)
      victim = try Victim(
        [try Fixture.compile(test.program), test.name, Fixture.scratch, "\(rounds)"],
        parking: .frozen)
      let fields = try victim.line().split(separator: " ")
      try #require(fields.count == 3 && fields[0] == "ready")
      address = UInt64(fields[2].dropFirst(2), radix: 16)
      service.onTrimLoss { [lost] _, reason in lost.reasons.withLock { $0.append(reason) } }
    }

    /// The reasons for which all memory has come back.
    var losses: [String] { lost.reasons.withLock { $0 } }

    var isTrimmed: Bool { fileExists(image) }

    @discardableResult
    func trim() throws -> TrimSummary {
      try service.trim(victim.target, to: image)
    }

    /// Trims the worker, and lets it try its case with missing memory.
    func run() throws {
      // What it uses to get there may bring back neighbours, too: then it is trimmed again.
      for _ in 0..<10 {
        try trim()
        let answer = try answer(to: "run")
        if answer == "present" { continue }
        try #require(answer == "right")
        return
      }
      Issue.record("the memory is always in RAM")
    }

    private func answer(to command: String) throws -> String {
      try victim.send(command)
      while true {
        let line = try victim.line()
        // These lines only say that it is at work.
        if !line.hasPrefix("at "), line != "alarm" { return line }
      }
    }

    /// Brings all memory back, and looks at it again.
    func finish() throws {
      let filled = try service.fill(victim.target)
      #expect(filled.missing?.bytes ?? 0 == 0)
      #expect(isGone(image))
      #expect(try victim.ask("check") == "whole")
      #expect(try !hasUserfaults(victim.process.pid))
    }
  }
}
