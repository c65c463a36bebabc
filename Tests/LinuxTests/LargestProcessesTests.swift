import Glibc
import Testing

@testable import Linux

@Suite("The largest processes") struct LargestProcessesTests {
  private func stat(_ pid: Int32, parent: Int32, pages: UInt64) throws -> ProcessStat {
    var stat = try ProcessStat.read(getpid())
    (stat.pid, stat.parent, stat.residentPages) = (pid, parent, pages)
    return stat
  }

  @Test("The processes are ordered by their memory, and kernel threads aren't included")
  func order() throws {
    let all = try [
      stat(5, parent: 1, pages: 10), stat(6, parent: 5, pages: 30), stat(7, parent: 2, pages: 0),
      stat(8, parent: 6, pages: 20),
    ]
    let stats = Dictionary(uniqueKeysWithValues: all.map { ($0.pid, $0) })
    let largest = LargestProcesses.largest(2, of: stats)
    #expect(largest.map(\.pid) == [6, 8])
    #expect(largest.map(\.ancestors) == [[5, 1], [6, 5, 1]])
    #expect(largest.first?.resident == 30 * Int64(pageSize))
    #expect(LargestProcesses.largest(9, of: stats).map(\.pid) == [6, 8, 5])
  }

  @Test func `Parents that form a ring end the search for them`() throws {
    let stats: [Int32: ProcessStat] = try [
      5: stat(5, parent: 6, pages: 1), 6: stat(6, parent: 5, pages: 1),
    ]
    #expect(LargestProcesses.largest(9, of: stats).map(\.ancestors) == [[6], [5]])
  }

  @Test("The real machine's processes are read, and a deadline that has passed leaves them out")
  func real() throws {
    let child = try TestChild(
      "python3", "-c",
      "x = b'x' * (200 << 20); print('ready', flush=True); import time; time.sleep(60)")
    #expect(try child.line() == "ready")
    let largest = try LargestProcesses.read(upTo: 1000, until: Deadline(in: .seconds(60)))
    let process = try #require(largest.processes.first { $0.pid == child.pid })
    #expect(largest.isComplete && process.resident >= 200 << 20)
    #expect(process.ancestors.contains(getpid()))
    let late = try LargestProcesses.read(upTo: 5, until: Deadline(in: .zero))
    #expect(!late.isComplete && late.processes.isEmpty)
  }

  @Test(
    "A process belongs to its nearest ancestor worker, or to the worker of its session or cgroup")
  func owners() {
    let owners = ProcessOwners([
      .init(worker: "outer", pid: 10, session: 10), .init(worker: "inner", pid: 12),
      .init(worker: "held", pid: 20, cgroup: "/sys/fs/cgroup/dormouse/worker-held"),
    ])
    func worker(_ pid: Int32, _ ancestors: [Int32], session: Int32 = 1, _ group: String = "/")
      -> String?
    {
      owners.worker(
        of: SizedProcess(pid: pid, name: "x", resident: 1, ancestors: ancestors, session: session),
        cgroup: { _ in group })
    }
    #expect(worker(13, [12, 11, 10, 1]) == "inner")
    #expect(worker(11, [10, 1]) == "outer" && worker(10, [1]) == "outer")
    #expect(worker(30, [1], session: 10) == "outer")
    #expect(worker(31, [1], "/dormouse/worker-held") == "held")
    #expect(worker(31, [1], "/dormouse/worker-held/inner/deep") == "held")
    #expect(worker(31, [1], "/dormouse") == nil)
    #expect(worker(31, [1], "/user.slice/worker-other") == nil)
    #expect(worker(31, [1]) == nil)
  }
}
