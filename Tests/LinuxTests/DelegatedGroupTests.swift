import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("The daemon's group in a delegated cgroup") struct DelegatedGroupTests {
  private func write(_ path: String, _ text: String) throws {
    try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644).writeAll(text)
  }

  @Test("Workers belong beside the daemon's own group if the group around both is empty")
  func rootForChildren() throws {
    // Directories imitate groups, because only names and files matter here.
    let scratch = try Scratch()
    let unit = scratch.path
    let procs = "\(unit)/cgroup.procs"
    try write(procs, "")
    #expect(DelegatedGroup.rootForChildren(of: "\(unit)/daemon") == unit)
    #expect(DelegatedGroup.rootForChildren(of: "\(unit)/self") == unit)
    #expect(DelegatedGroup.rootForChildren(of: "\(unit)/other") == "\(unit)/other")
    try write(procs, "1\n")
    #expect(DelegatedGroup.rootForChildren(of: "\(unit)/daemon") == "\(unit)/daemon")
  }

  @Test(
    "Before a start, controllers are turned off, unless systemd starts the daemon in a child group")
  func prepare() throws {
    let scratch = try Scratch()
    let unit = scratch.path
    let workers = "\(unit)/dormouse-x"
    // A worker has groups of its own, for containers.
    let groups = [unit, workers, "\(workers)/worker-web", "\(workers)/worker-web/pod"]
    let controls = groups.map { "\($0)/cgroup.subtree_control" }
    for group in groups.dropFirst() { mkdir(group, 0o755) }
    for path in controls { try write(path, "memory pids\n") }
    mkdir("\(unit)/daemon", 0o755)
    try DelegatedGroup.prepareForStart("\(unit)/.control")
    #expect(access("\(unit)/self", F_OK) == 0)
    for path in controls { #expect(try readText(path).hasPrefix("memory pids")) }
    rmdir("\(unit)/daemon")
    // `self` has no such file here; a real group always has it.
    try write("\(unit)/self/cgroup.subtree_control", "")
    try DelegatedGroup.prepareForStart("\(unit)/.control")
    for path in controls { #expect(try readText(path).hasPrefix("-memory -pids")) }
    // The first daemon hasn't started, and this process is in the unit's own group.
    for path in controls { try write(path, "") }
    try DelegatedGroup.prepareForStart(unit)
    for path in controls { #expect(try readText(path).isEmpty) }
  }

  @Test("Memory and tasks of workers are counted, and in the group above only on request")
  func counting() throws {
    let scratch = try Scratch()
    let (above, root) = (scratch.path, CgroupRoot(path: "\(scratch.path)/dormouse-x"))
    mkdir(root.path, 0o755)
    let control = "cgroup.subtree_control"
    for group in [above, root.path] { try write("\(group)/\(control)", "") }
    // A file keeps the last text that was written at its start; a group applies both.
    root.countMemoryAndTasks(includingAbove: false)
    #expect(try readText("\(above)/\(control)").isEmpty)
    #expect(try readText("\(root.path)/\(control)") == "+pidsry")
    root.countMemoryAndTasks(includingAbove: true)
    #expect(try readText("\(above)/\(control)") == "+pidsry")
  }

  @Test func `The limits that were reached are read from a group outwards`() throws {
    let scratch = try Scratch()
    let (above, inner) = ("\(scratch.path)/above", "\(scratch.path)/above/own")
    for path in [above, inner] { mkdir(path, 0o755) }
    for group in [above, inner] { try write("\(group)/cgroup.controllers", "memory") }
    #expect(MemoryLimitHits.read(from: inner) == nil)
    try write("\(inner)/memory.events", "low 0\noom 2\noom_kill 3\n")
    try write("\(above)/memory.events", "oom 7\n")
    try write("\(above)/memory.events.local", "oom 4\n")
    let before = try #require(MemoryLimitHits.read(from: inner))
    #expect(before.groups == [.init(path: inner, count: 2), .init(path: above, count: 4)])
    #expect(!before.mayHaveHiddenLimits)
    #expect(before.reached(since: before) == nil)
    try write("\(above)/memory.events.local", "oom 5\n")
    try write("\(above)/cgroup.type", "domain\n")
    let now = try #require(MemoryLimitHits.read(from: inner))
    #expect(now.reached(since: before) == above && now.mayHaveHiddenLimits)
  }

  @Test func `A group's count of processes that the kernel's OOM killer ended is read`() {
    let text = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 0\n"
    #expect(WorkerCgroup.killedForMemory(in: Array(text.utf8)) == 3)
    #expect(WorkerCgroup.killedForMemory(in: Array("oom 2\n".utf8)) == nil)
  }

  @Test(.enabled(if: TestCgroups.available, "no cgroup for workers can be made here"))
  func `Dormouse never writes to a group that another program manages`() throws {
    try TestCgroups.with("foreign") { group in
      let foreign = try WorkerCgroup(path: group.path, isExternal: true)
      #expect(throws: CgroupError.external(path: group.path)) {
        try foreign.freeze(until: Deadline(in: .seconds(1)))
      }
      #expect(throws: CgroupError.external(path: group.path)) {
        try foreign.remove(until: Deadline(in: .seconds(1)))
      }
      #expect(try !group.isFrozen)
      #expect(foreign.freezer == nil)
    }
  }
}
