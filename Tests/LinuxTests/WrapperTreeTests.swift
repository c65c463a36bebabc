import Testing

@testable import Linux

/// The processes that a wrapper counts as its worker's.
@Suite struct WrapperTreeTests {
  private static func process(
    _ pid: Int32, _ name: String, of parent: Int32, session: Int32
  ) throws -> ProcessStat {
    let after = "S \(parent) \(pid) \(session) 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 \(pid) 0 0"
    let tail = (25...52).map { _ in "0" }.joined(separator: " ")
    return try #require(ProcessStat(parsing: Array("\(pid) (\(name)) \(after) \(tail)\n".utf8)))
  }

  /// A wrapper (10) has a shell (20). The shell's job (30) is a wrapper with a guardian and an
  /// editor (32), which has a child (33) in the shell's session.
  private static func all() throws -> [ProcessStat] {
    [
      try process(10, "dormouse-wrap", of: 1, session: 5),
      try process(20, "bash", of: 10, session: 20),
      try process(30, "dormouse-wrap", of: 20, session: 20),
      try process(31, "dormouse-guard", of: 30, session: 31),
      try process(32, "vim", of: 30, session: 20), try process(33, "sh", of: 32, session: 20),
      try process(40, "sleep", of: 20, session: 20), try process(50, "orphan", of: 10, session: 5),
      try process(60, "dormouse-signal", of: 10, session: 5),
    ]
  }
  private static let root = ProcessIdentity(pid: 20, startTime: 20)

  private static func members(_ wrapper: WrapperTree?) throws -> [Int32] {
    ProcessTree.members(of: try all(), root: root, session: 20, wrapper: wrapper).map(\.pid)
  }

  @Test func `A wrapper that the worker has started isn't the worker's, nor is anything below it`()
    throws
  {
    #expect(try Self.members(WrapperTree(wrapper: 10)) == [20, 40])
    #expect(try Self.members(WrapperTree(wrapper: 10, others: [60])) == [20, 40, 50])
  }

  @Test func `A program beside the worker has none of the worker's orphans`() throws {
    let root = ProcessIdentity(pid: 45, startTime: 45)
    let all = try Self.all() + [try Self.process(45, "shed", of: 10, session: 45)]
    let members = ProcessTree.members(
      of: all, root: root, session: 45, wrapper: WrapperTree(wrapper: 10, others: [45, 60]))
    #expect(members.map(\.pid) == [45])
  }

  @Test func `To a daemon the wrapper in a worker is a part of the worker`() throws {
    #expect(try Self.members(nil) == [20, 30, 31, 32, 33, 40])
  }

  @Test func `A worker that is a wrapper itself is found`() throws {
    let root = ProcessIdentity(pid: 30, startTime: 30)
    let members = ProcessTree.members(
      of: try Self.all(), root: root, session: nil, wrapper: WrapperTree(wrapper: 10))
    #expect(members.map(\.pid) == [30, 31, 32, 33])
  }

  @Test(arguments: [
    ("/user.slice/dormouse-0f-state/worker-bash-7", true),
    ("/dormouse-7/worker-a/below", true), ("/", false), ("/user.slice/dormouse-7", false),
    ("/dormouse-7/other", false), ("/worker-a/dormouse-7", false),
  ])
  func `A worker's cgroup is known by its path`(group: String, isWorkerGroup: Bool) {
    #expect(OuterWrapper.isWorkerGroup(group) == isWorkerGroup)
  }
}
