import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("The limits of the cgroups that contain the workers") struct ContainingLimitsTests {
  /// Directories imitate groups, because only names and files matter here.
  private struct Groups {
    let scratch: Scratch
    var top: String { scratch.path }

    init() throws {
      scratch = try Scratch()
      try make("")
    }

    func make(_ group: String, _ files: [String: String] = [:]) throws {
      mkdir(top + group, 0o755)
      for (name, text) in files.merging(["cgroup.procs": ""], uniquingKeysWith: { $1 }) {
        try Descriptor.open("\(top)\(group)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
          .writeAll(text)
      }
    }

    /// A process that is in no group of version 1 and whose workers are in `group`.
    func read(_ group: String, _ machine: MemoryInfo) throws -> MemoryInfo {
      try ContainingLimits(membership: KernelRecord(membership("0::/\n")), workers: top + group)
        .applied(to: machine)
    }

    func membership(_ text: String) throws -> String {
      try Descriptor.open("\(top)/own", O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644).writeAll(text)
      return "\(top)/own"
    }
  }

  private let machine = MemoryInfo(total: 8000, available: 5000, swapFree: 900)

  private func files(
    max: String, high: String = "max", current: Int, inactive: Int = 0, active: Int = 0
  ) -> [String: String] {
    [
      "memory.max": "\(max)\n", "memory.high": "\(high)\n", "memory.current": "\(current)\n",
      "memory.stat":
        "anon 5\nfile 7\ninactive_file \(inactive)\nactive_file \(active)\nslab_reclaimable 0\n",
    ]
  }

  @Test("The smallest limit is the budget, and the group with the least available memory is named")
  func smallest() throws {
    let groups = try Groups()
    try groups.make("", files(max: "max", current: 7000))
    try groups.make("/a", files(max: "3000", current: 2800, inactive: 100, active: 60))
    // The worker's group has much of its own limit left, and the group above hasn't.
    try groups.make("/a/b", files(max: "max", high: "2000", current: 500))
    try groups.make("/a/b/workers", files(max: "max", current: 400))
    try groups.make("/a/b/workers/web", files(max: "10", current: 9))
    let info = try groups.read("/a/b/workers", machine)
    #expect(info.total == 2000)
    // Half of the file pages in use can be reclaimed.
    #expect(info.available == 200 + 100 + 30)
    #expect(info.limitedBy == groups.top + "/a")
    #expect(info.swapFree == 900)
  }

  @Test func `Without a limit below the machine's memory, nothing is changed`() throws {
    let groups = try Groups()
    // One tree's groups lack the memory controller, and the other's limit is too large to matter.
    try groups.make("/a")
    #expect(try groups.read("/a", machine) == machine)
    try groups.make("/a", files(max: "9000", current: 8900))
    #expect(try groups.read("/a", machine) == machine)
  }

  @Test(
    "What the machine has left counts where it is less, and swap as far as the group may use it")
  func machineIsShorter() throws {
    let groups = try Groups()
    var limited = files(max: "6000", current: 100)
    limited["memory.swap.max"] = "500\n"
    limited["memory.swap.current"] = "200\n"
    try groups.make("/a", limited)
    let info = try groups.read("/a", machine)
    #expect(info.total == 6000 && info.available == 5000 && info.swapFree == 300)
    #expect(info.limitedBy == groups.top + "/a")
  }

  @Test func `The next read shows a changed limit, and use above a lowered limit`() throws {
    let groups = try Groups()
    try groups.make("/a", files(max: "max", current: 1000))
    let limits = try ContainingLimits(
      membership: KernelRecord(groups.membership("0::/\n")), workers: groups.top + "/a")
    #expect(limits.applied(to: machine) == machine)
    try groups.make("/a", files(max: "900", current: 1000))
    #expect(limits.applied(to: machine).total == 900)
    #expect(limits.applied(to: machine).available == 0)
    try groups.make("/a", files(max: "max", current: 1000))
    #expect(limits.applied(to: machine) == machine)
  }

  @Test func `A limit whose files can't be read at the moment still counts`() throws {
    let groups = try Groups()
    try groups.make("/a", files(max: "1000", current: 400))
    let limits = try ContainingLimits(
      membership: KernelRecord(groups.membership("0::/\n")), workers: groups.top + "/a")
    let before = limits.applied(to: machine)
    #expect(before.available == 600)
    // A directory replaces the file. Reading it fails with EISDIR, as it would with EMFILE.
    unlink("\(groups.top)/a/memory.current")
    mkdir("\(groups.top)/a/memory.current", 0o755)
    #expect(limits.applied(to: machine) == before)
  }

  @Test(
    "Version 1: limits of memory, of memory and swap together, and of groups that can't be seen")
  func firstVersion() throws {
    let groups = try Groups()
    try groups.make(
      "/a",
      [
        "memory.limit_in_bytes": "2000\n", "memory.usage_in_bytes": "1500\n",
        "memory.memsw.limit_in_bytes": "4000\n", "memory.memsw.usage_in_bytes": "1900\n",
        "memory.stat": "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 40\n",
      ])
    var files = LimitFiles(path: groups.top + "/a", isFirstVersion: true)
    // 1,500 bytes of memory and 400 bytes of swap are in use.
    #expect(
      try files.room(below: 8000)
        == MemoryRoom(group: files.path, limit: 2000, available: 720, swapFree: 1600))
    #expect(try files.room(below: 2000) == nil)
    files.hiddenLimit = 1800
    #expect(try files.room(below: 8000)?.limit == 1800)
    #expect(try files.room(below: 8000)?.available == 520)
  }

  @Test("A container's group is found under its mount, whatever path the process sees")
  func container() throws {
    let text = "5:cpu:/x\n4:hugetlb,memory:/docker/1:2\n0::/\n"
    #expect(LimitFiles.groupOfFirstVersion(parsing: text) == "/docker/1:2")
    #expect(LimitFiles.groupOfFirstVersion(parsing: "0::/memory\n") == nil)
    let partialMount = try #require(
      Mount(parsing: "35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory"))
    #expect(partialMount.options == ["rw", "memory"])
    #expect(LimitFiles.directory(of: "/docker/1", in: partialMount) == "/sys/fs/cgroup/memory")
    #expect(LimitFiles.directory(of: "/docker/1/x", in: partialMount) == "/sys/fs/cgroup/memory/x")
    // The process is in a cgroup namespace of its own.
    #expect(LimitFiles.directory(of: "/", in: partialMount) == "/sys/fs/cgroup/memory")
    #expect(LimitFiles.directory(of: "/../other", in: partialMount) == nil)
    #expect(LimitFiles.directory(of: "/docker/2", in: partialMount) == nil)
  }
}
