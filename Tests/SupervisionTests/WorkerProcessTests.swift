import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct WorkerProcessTests {
  @Test func `A worker gets its name, sockets, directory and log, and no stdin`() throws {
    let worker = try TestWorker(
      "sh", "-c", "echo $DORMOUSE_WORKER $NOTIFY_SOCKET $MEMORY_PRESSURE_WATCH; pwd; cat; echo end",
      name: "web one", environment: ["NOTIFY_SOCKET": "/the/daemons", "LISTEN_FDS": "3"])
    #expect(try worker.waitForExit() == .exited(0))
    let lines = try readText(worker.log).split(separator: "\n").map(String.init)
    #expect(
      lines == [
        "web one \(worker.notify.path) \(worker.watch.path)", worker.scratch.path, "end",
      ])
    let plan = worker.process.plan
    #expect(plan.fullEnvironment["LISTEN_FDS"] == nil)
    #expect(plan.fullEnvironment["MEMORY_PRESSURE_WRITE"] != nil)
    #expect(plan.bareEnvironment["NOTIFY_SOCKET"] == nil)
    var status = stat()
    #expect(stat(worker.log, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
  }

  @Test func `A worker has its configured umask, or the daemon's`() throws {
    let line = try readText("/proc/self/status").split(separator: "\n").first {
      $0.hasPrefix("Umask:")
    }
    let usual = String(try #require(line?.split(separator: "\t").last))
    for (umask, text) in [(0o027, "0027"), (0, "0000"), (nil, usual)] as [(UInt32?, String)] {
      let worker = try TestWorker("sh", "-c", "umask", umask: umask)
      #expect(try worker.waitForExit() == .exited(0))
      #expect(try readText(worker.log) == text + "\n")
    }
  }

  @Test func `A worker's exit code or signal is reported as it was`() throws {
    let worker = try TestWorker("sh", "-c", "exit 7")
    #expect(try worker.waitForExit() == .exited(7))
    let killed = try TestWorker("sleep", "60")
    #expect(try killed.process.reap() == nil)
    #expect(killed.process.life == .lives)
    try killed.process.signal(SIGTERM)
    #expect(try killed.waitForExit() == .signaled(SIGTERM))
    #expect(killed.process.life == .hasEnded)
    #expect(throws: SystemCallError.self) { try killed.process.signal(SIGTERM) }
  }

  @Test func `An error about a command that doesn't exist names it and where it was searched for`()
    throws
  {
    let scratch = try Scratch()
    func failure(_ command: [String], directory: String = "/", log: String? = nil) -> LaunchError? {
      do throws(LaunchError) {
        _ = try WorkerProcess.launch(
          LaunchPlan(
            name: "a", command: command, directory: directory, environment: ["PATH": "/bin"],
            logPath: log ?? "\(scratch.path)/log"))
        return nil
      } catch { return error }
    }
    #expect(
      failure(["no-such-thing"])?.description
        == "can't start no-such-thing: not found in its PATH, /bin")
    #expect(
      failure(["/x/y"])?.description == "can't start /x/y: No such file or directory")
    #expect(failure(["/x/y"])?.reason == "/x/y: No such file or directory")
    #expect(failure([])?.description == "its command is empty")
    #expect(failure(["sh"], directory: "/nowhere")?.description.contains("/nowhere") == true)
    #expect(failure(["sh"], log: "/nowhere/log")?.description.contains("/nowhere/log") == true)
    // A link that replaces the log isn't followed.
    let link = "\(scratch.path)/link"
    #expect(symlink("/dev/null", link) == 0)
    #expect(failure(["sh"], log: link)?.description.contains("link") == true)
  }

  @Test
  func
    `A worker's memory stays readable through its descriptor, also after the worker called exec`()
    throws
  {
    let worker = try TestWorker("sh", "-c", "exec sleep 60")
    #expect(worker.process.memory == nil, "a launch would wait for the second exec")
    // It has its name before it has its arguments.
    #expect(
      try eventually {
        let stat = try ProcessStat.read(worker.process.identity.pid)
        return stat.name == "sleep" && stat.state == .sleeping
      })
    try worker.process.refreshMemory()
    let memory = try #require(worker.process.memory)
    let stat = try ProcessStat.read(worker.process.identity.pid)
    var bytes = [UInt8](repeating: 0, count: stat.arguments.count)
    let count = bytes.count
    #expect(pread(memory.raw, &bytes, count, off_t(stat.arguments.lowerBound)) == count)
    #expect(String(decoding: bytes, as: UTF8.self) == "sleep\u{0}60\u{0}")
  }

  @Test
  func `Killing a worker ends all of its processes, and each of them counts as the worker's own`()
    throws
  {
    let worker = try TestWorker(
      "sh", "-c", "(sleep 60 & sh -c 'sleep 61 & echo on' &) ; sleep 62")
    try worker.waitForOutput("on")
    #expect(try eventually { try worker.process.tree().processes.count >= 4 })
    let tree = try worker.process.tree()
    for pid in tree.pids { #expect(worker.process.owns(pid)) }
    #expect(!worker.process.owns(getpid()))
    #expect(!worker.process.owns(1))
    try worker.process.killAll()
    #expect(try worker.waitForExit() == .signaled(SIGKILL))
    #expect(try eventually { tree.processes.allSatisfy { $0.identity.hasEnded } })
  }

  @Test
  func `A worker whose first process has left its cgroup is killed with its children there`()
    throws
  {
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-\(getpid())-moved") else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    defer { root.remove() }
    let groups = try ["worker", "other"].map { try WorkerCgroup.create(in: root, name: $0) }
    defer {
      for group in groups {
        try? group.kill()
        try? group.remove(until: Deadline(in: .seconds(60)))
      }
    }
    let worker = try TestWorker(
      "sh", "-c", "echo $$ >'\(groups[1].path)/cgroup.procs'; sleep 60 & echo on; wait",
      cgroup: groups[0])
    try worker.waitForOutput("on")
    #expect(try worker.process.tree().isEmpty)
    let moved = try groups[1].processes().map { try ProcessIdentity.current(of: $0) }
    #expect(moved.count == 2 && moved.contains(worker.process.identity))
    try worker.process.killAll()
    #expect(try worker.waitForExit() == .signaled(SIGKILL))
    #expect(try eventually { moved.allSatisfy(\.hasEnded) })
  }

  @Test func `Adoption takes a process only if its start time is the recorded one`() throws {
    let worker = try TestWorker("sleep", "60")
    let identity = worker.process.identity
    let adopted = try WorkerProcess.adopt(identity, plan: worker.process.plan)
    #expect(adopted.life == .lives)
    try adopted.refreshMemory()
    #expect(adopted.memory != nil)
    let other = ProcessIdentity(pid: identity.pid, startTime: identity.startTime + 1)
    #expect(throws: SystemCallError.self) {
      try WorkerProcess.adopt(other, plan: worker.process.plan)
    }
    // Process 1 is never a child of this process.
    let strange = try WorkerProcess.adopt(.current(of: 1), plan: worker.process.plan)
    #expect(try strange.reap() == nil)
  }

  @Test func `A worker whose cgroup can't be used runs without one, and the reason is reported`()
    throws
  {
    let scratch = try Scratch()
    // This directory isn't a cgroup, but has a cgroup's files.
    try Descriptor.open("\(scratch.path)/cgroup.events", O_WRONLY | O_CREAT, mode: 0o600)
      .writeAll("populated 0\nfrozen 0\n")
    let worker = try TestWorker("sleep", "60", cgroup: WorkerCgroup(path: scratch.path))
    #expect(worker.process.cgroup == nil)
    #expect(worker.process.cgroupRefusal?.description.contains("cgroup") == true)
    #expect(worker.process.life == .lives)
  }

  @Test func `A log over its limit is renamed at launch`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/log"
    let destination = LogDestination(path: path)
    let first = try WorkerLog.open(destination, limit: 10)
    #expect(first.start == 0)
    try first.descriptor.writeAll("12345678901")
    let second = try WorkerLog.open(destination, limit: 11)
    #expect(second.start == 11)
    let third = try WorkerLog.open(destination, limit: 10)
    #expect(third.start == 0)
    try third.descriptor.writeAll("new")
    #expect(try readText(path) == "new")
    #expect(try readText(path + ".1") == "12345678901")
  }
}
