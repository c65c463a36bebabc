import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("A process that another program has frozen") struct ForeignFreezeTests {
  @Test func `The groups of both versions that can be frozen are read, without the roots`() {
    let text = """
      9:name=systemd:/x
      6:cpu,freezer:/libpod_parent/libpod-1
      4:memory:/y
      0::/a:b

      """
    #expect(
      ForeignFreeze.groups(parsing: text) == [
        .init(isOld: true, path: "/libpod_parent/libpod-1"), .init(isOld: false, path: "/a:b"),
      ])
    #expect(ForeignFreeze.groups(parsing: "6:freezer:/\n0::/\n") == [])
  }

  @Test func `A process counts as frozen while its group is frozen, in either version`() throws {
    let child = try TestChild("sleep", "1000")
    #expect(!ForeignFreeze.holds(child.pid) && !ForeignFreeze.holds(1 << 22))
    if let mountPoint = OldFreezer.mountPoint() {
      let group = "\(mountPoint)/dormouse-test-\(child.pid)"
      // Without the permission, that version isn't tested.
      if mkdir(group, 0o755) == 0 {
        defer { rmdir(group) }
        try writeControl("\(group)/cgroup.procs", "\(child.pid)")
        try writeControl("\(group)/freezer.state", "FROZEN")
        #expect(try eventually { ForeignFreeze.holds(child.pid) })
        try writeControl("\(group)/freezer.state", "THAWED")
        #expect(!ForeignFreeze.holds(child.pid))
        try writeControl("\(mountPoint)/cgroup.procs", "\(child.pid)")
      }
    }
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-freeze-\(child.pid)") else {
      return
    }
    defer { root.remove() }
    let group = try WorkerCgroup.create(in: root, name: "frozen")
    try group.add(child.pid)
    try group.freeze(until: Deadline(in: .seconds(60)))
    #expect(ForeignFreeze.holds(child.pid))
    try group.thaw(until: Deadline(in: .seconds(60)))
    #expect(!ForeignFreeze.holds(child.pid))
    kill(child.pid, SIGKILL)
    try child.waitForExit()
    try group.remove(until: Deadline(in: .seconds(60)))
  }
}
