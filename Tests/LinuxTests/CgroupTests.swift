import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct CgroupParsingTests {
  @Test func `Different worker names become different directory names`() {
    #expect(CgroupRoot.sanitised("web-1_a") == "web-1_a")
    #expect(CgroupRoot.sanitised("../up") == "%2e%2e%2fup")
    #expect(CgroupRoot.sanitised("cgroup.procs") == "cgroup%2eprocs")
    let long = String(repeating: "x", count: 300)
    #expect(CgroupRoot.sanitised(long).utf8.count < 255)
    #expect(CgroupRoot.sanitised(long + "1") != CgroupRoot.sanitised(long + "2"))
  }

  @Test func `Each state directory has a group of its own, even with a long path`() {
    let end = "/" + String(repeating: "x", count: 100) + "/state"
    let names = ["/a", "/b", "", "/home/me"].map { CgroupRoot.name(forStateDirectory: $0 + end) }
    #expect(Set(names).count == names.count)
    #expect(Set(names.map { CgroupRoot.sanitised($0) }).count == names.count)
    // A later version must find the group by this name.
    #expect(
      CgroupRoot.name(forStateDirectory: "/var/lib/dormouse")
        == "dormouse-aebae7aa590cec84-/var/lib/dormouse")
  }

  @Test func `A process's own group is found through a mount of the whole tree or of a part`()
    throws
  {
    #expect(CgroupRoot.groupPath(parsing: "4:memory:/x\n0::/user/me\n") == "/user/me")
    #expect(CgroupRoot.groupPath(parsing: "4:memory:/x\n") == nil)
    let whole = try #require(
      Mount(parsing: "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw"))
    #expect(whole.type == "cgroup2")
    #expect(CgroupRoot.directory(of: "/user/me", in: whole) == "/sys/fs/cgroup/user/me")
    #expect(CgroupRoot.directory(of: "/", in: whole) == "/sys/fs/cgroup")
    let partialMount = try #require(
      Mount(parsing: "41 31 0:38 /user /sys/fs/my\\040group rw - cgroup2 cgroup2 rw"))
    #expect(CgroupRoot.directory(of: "/user/me", in: partialMount) == "/sys/fs/my group/me")
    #expect(CgroupRoot.directory(of: "/username", in: partialMount) == nil)
    #expect(Mount(parsing: "41 31 0:38 / /sys") == nil)
  }
}

@Suite(
  .enabled(
    if: TestCgroups.available,
    "no cgroup v2 group here that we may make children in: nothing to try the freezer on"))
struct CgroupTests {
  @Test func `An existing group is found by its name, and a missing one isn't made`() throws {
    let name = "dormouse-test-\(getpid())-find"
    #expect(CgroupRoot.find(name: name) == nil)
    let root = try CgroupRoot.detect(name: name)
    defer { root.remove() }
    #expect(CgroupRoot.find(name: name) == root)
    #expect(try WorkerCgroup.find(in: root, name: "w") == nil)
    let group = try WorkerCgroup.create(in: root, name: "w")
    #expect(try WorkerCgroup.find(in: root, name: "w")?.path == group.path)
    try group.remove(until: Deadline(in: .seconds(60)))
  }

  /// No list contains a large process while its last thread frees its memory.
  @Test func `A process that is ending hasn't left its group`() throws {
    try TestCgroups.with("ending") { group in
      let child = try TestChild(
        "python3", "-c",
        """
        import threading, time
        memory = b'x' * (300 << 20)
        for _ in range(8): threading.Thread(target=time.sleep, args=(1000,)).start()
        print(1, flush=True)
        """,
        cgroup: group)
      #expect(try child.line() == "1")
      try group.kill()
      var losses = 0
      let (process, deadline) = (child.process.identity, Deadline(in: .seconds(60)))
      while !process.hasEnded, !deadline.hasPassed { losses += group.hasLost(process) ? 1 : 0 }
      #expect(process.hasEnded && losses == 0, "\(losses) losses")
    }
  }

  @Test func `Without cgroup.kill, all processes in a group are killed, and no others`() throws {
    try TestCgroups.with("each") { group in
      let inside = try (0..<3).map { _ in try TestChild("sleep", "1000", cgroup: group) }
      let outside = try TestChild("sleep", "1000")
      try group.killEach()
      for child in inside { try child.waitForExit() }
      #expect(outside.process.identity.life == .lives)
    }
  }

  @Test
  func `A process that starts in a group stands still while frozen, and continues when thawed`()
    throws
  {
    try TestCgroups.with("freeze") { group in
      let child = try TestChild(
        "sh", "-c", "echo on; while :; do :; done", cgroup: group)
      #expect(try child.line() == "on")
      #expect(try group.processes() == [child.pid])
      #expect(try group.isPopulated)

      try group.freeze(until: Deadline(in: .seconds(60)))
      #expect(try group.isFrozen)
      let frozen = try ProcessStat.read(child.pid).cpuTicks
      // SIGCONT from another process must not wake it.
      kill(child.pid, SIGCONT)
      usleep(50_000)
      #expect(try ProcessStat.read(child.pid).cpuTicks == frozen)

      try group.thaw(until: Deadline(in: .seconds(60)))
      #expect(try !group.isFrozen)
      #expect(try eventually { try ProcessStat.read(child.pid).cpuTicks > frozen })
    }
  }

  @Test func `Killing a frozen group with groups below it empties it, and it can be removed`()
    throws
  {
    try TestCgroups.with("kill") { group in
      let child = try TestChild("sh", "-c", "sleep 60 & sleep 61 & echo on; wait", cgroup: group)
      #expect(try child.line() == "on")
      let below = "\(group.path)/below.slice"
      #expect(mkdir(below, 0o755) == 0)
      let moved = try #require(group.processes().last)
      try writeControl("\(below)/cgroup.procs", "\(moved)")
      #expect(try Set(group.processes()).count == 3)

      try group.freeze(until: Deadline(in: .seconds(60)))
      try group.kill()
      // init reaps the orphans, and this process reaps the shell.
      try child.waitForExit()
      #expect(
        try eventually { try group.processes().allSatisfy { try ProcessStat.read($0).isEnded } })
      waitpid(child.pid, nil, 0)
      try group.remove(until: Deadline(in: .seconds(60)))
      #expect(access(group.path, F_OK) != 0)
      // Removing it a second time has the same result.
      try group.remove(until: Deadline(in: .seconds(1)))
    }
  }

  @Test func `Processes are listed although a group below theirs is threaded`() throws {
    try TestCgroups.with("threaded") { group in
      let child = try TestChild("sleep", "60", cgroup: group)
      let below = "\(group.path)/vcpu0"
      #expect(mkdir(below, 0o755) == 0)
      try writeControl("\(below)/cgroup.type", "threaded")
      #expect(throws: SystemCallError.self) { try readFile("\(below)/cgroup.procs") }
      #expect(try group.processes() == [child.pid])
    }
  }

  @Test func `A new group doesn't keep what an ended worker of its name has left below`() throws {
    try TestCgroups.with("again") { group in
      let below = "\(group.path)/below.slice"
      #expect(mkdir(below, 0o755) == 0)
      // The kernel would kill each process that starts in the old group.
      try group.kill()
      let parent = String(group.path.dropLast("/worker-again".count))
      let next = try WorkerCgroup.create(in: CgroupRoot(path: parent), name: "again")
      #expect(next.inode != group.inode && access(below, F_OK) != 0)
      try next.remove(until: Deadline(in: .seconds(60)))
    }
  }

  @Test func `A group that has processes isn't used for another worker`() throws {
    try TestCgroups.with("busy") { group in
      let child = try TestChild("sleep", "60", cgroup: group)
      let parent = String(group.path.dropLast("/worker-busy".count))
      _ = child
      #expect(throws: CgroupError.inUse(path: group.path)) {
        try WorkerCgroup.create(in: CgroupRoot(path: parent), name: "busy")
      }
    }
  }

  @Test func `Removing a group that stays populated fails at the deadline`() throws {
    try TestCgroups.with("stay") { group in
      let child = try TestChild("sleep", "60", cgroup: group)
      _ = child
      #expect(throws: CgroupError.self) {
        try group.remove(until: Deadline(in: .milliseconds(50)))
      }
    }
  }

  @Test func `The process tree of a worker with a group is all processes of the group`() throws {
    try TestCgroups.with("tree") { group in
      let child = try TestChild(
        "sh", "-c", "setsid sh -c 'setsid sleep 60 & echo on'; sleep 61 & wait", cgroup: group)
      #expect(try child.line() == "on")
      #expect(
        try eventually {
          try ProcessTree.discover(root: child.process.identity, cgroup: group).pids.count == 3
        })
    }
  }
}
