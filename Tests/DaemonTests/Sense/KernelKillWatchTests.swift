import Control
import Glibc
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Linux

@Suite("The watch for the kernel's OOM killer") struct KernelKillWatchTests {
  private final class Counts {
    var group: Int?
    var machine: Int?
    var stall: UInt64?
    var looks = 0
    var isEnding = false
  }

  private let world = SenseWorld()
  private let counts = Counts()
  private let scratch: Scratch
  private let loop: EventLoop
  private let jetsam: JetsamKeeper
  private let watch: KernelKillWatch

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop(check: nil)
    jetsam = JetsamKeeper(
      directory: scratch.path, disk: WorkQueue(name: "test-disk"), loop: try LoopReturn(loop),
      log: DaemonLog())
    watch = KernelKillWatch(
      clock: world.timers, driver: world.driver, jetsam: jetsam,
      counts: KernelKillCounts(
        inGroup: { [counts] _ in counts.group },
        onMachine: { [counts] in
          counts.looks += 1
          return counts.machine
        }, memoryStall: { [counts] in counts.stall },
        isEnding: { [counts] in counts.isEnding || $0.isEnding }),
      log: world.log)
  }

  @Test func `Each process of a worker that the kernel kills is logged once`() throws {
    let worker = try world.add("web") { $0.limits.memory = .megabytes(64) }
    counts.group = 0
    watch.begin(worker)
    watch.checkForKernelKills(of: worker)
    #expect(world.logged == [])
    counts.group = 1
    watch.checkForKernelKills(of: worker)
    watch.checkForKernelKills(of: worker)
    counts.group = 3
    watch.checkForKernelKills(of: worker)
    // A controller that was turned off and on again counts from 0.
    counts.group = 1
    watch.checkForKernelKills(of: worker)
    let lines = world.logged.map { String($0.split(separator: " (")[0]) }
    #expect(
      lines == [
        "warning: web: the kernel's OOM killer killed 1 process of it",
        "warning: web: the kernel's OOM killer killed 2 processes of it",
        "warning: web: the kernel's OOM killer killed 1 process of it",
      ])
    #expect(world.logged[0].hasSuffix("(limits.memory 64 MB)"))
  }

  @Test func `Kills that a cgroup counted before the adoption aren't the worker's`() throws {
    let worker = try world.add()
    counts.group = 7
    watch.begin(worker, isAdopted: true)
    watch.checkForKernelKills(of: worker)
    #expect(world.logged == [])
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
    counts.group = 8
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .outOfMemory)
    watch.checkForKernelKills(of: worker)
    #expect(world.logged == ["warning: web: the kernel's OOM killer killed 1 process of it"])
  }

  @Test func `An end by SIGKILL is the kernel's if the cgroup has counted a kill`() throws {
    let worker = try world.add()
    counts.group = 0
    watch.begin(worker)
    watch.checkForKernelKills(of: worker)
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
    // Processes elsewhere were killed. The cgroup's own count is more exact.
    counts.machine = 100
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
    counts.group = 1
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .outOfMemory)
    #expect(watch.status(.exited(1), of: worker) == .exited(1))
    // The daemon sent the SIGKILL.
    let end = try WorkerEndWorld()
    worker.ending = end.ending
    end.ending.kill()
    #expect(worker.isKilled)
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL), "ours")
  }

  @Test(arguments: [true, false])
  func `A check during the worker's end leaves the kill to that end`(hasGroup: Bool) throws {
    let worker = try world.add()
    func count(_ number: Int) {
      if hasGroup { counts.group = number } else { counts.machine = number }
    }
    count(7)
    watch.begin(worker, isAdopted: true)
    count(8)
    counts.isEnding = true
    for _ in 1...3 { watch.checkForKernelKills(of: worker) }
    #expect(world.logged == [])
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .outOfMemory)
  }

  @Test func `Without a count of the cgroup, the machine's count is used`() throws {
    let worker = try world.add()
    counts.machine = 7
    watch.begin(worker)
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
    counts.machine = 8
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .outOfMemory)
    watch.checkForKernelKills(of: worker)
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
    #expect(world.logged == [], "it may have been any process")
    // No count can be read.
    counts.machine = nil
    #expect(watch.status(.signaled(SIGKILL), of: worker) == .signaled(SIGKILL))
  }

  @Test func `The machine's count is read again only if tasks stalled on memory`() throws {
    let (web, db) = (try world.add("web"), try world.add("db"))
    counts.machine = 7
    counts.stall = 1000
    for worker in [web, db] { watch.begin(worker) }
    for _ in 1...5 { for worker in [web, db] { watch.checkForKernelKills(of: worker) } }
    let looks = counts.looks
    for _ in 1...5 { for worker in [web, db] { watch.checkForKernelKills(of: worker) } }
    #expect(counts.looks == looks)
    // The kernel has ended another process. That doesn't explain the end of this one by SIGKILL.
    counts.stall = 1500
    watch.checkForKernelKills(of: web)
    counts.machine = 8
    watch.checkForKernelKills(of: web)
    #expect(counts.looks == looks + 2, "once more than the stall has moved")
    #expect(watch.status(.signaled(SIGKILL), of: web) == .signaled(SIGKILL))
    // When a worker ends, the count is always read.
    counts.machine = 9
    #expect(watch.status(.signaled(SIGKILL), of: web) == .outOfMemory)
    // If the kernel has no account of stalls, the count is read each time.
    counts.stall = nil
    let before = counts.looks
    for _ in 1...3 { watch.checkForKernelKills(of: web) }
    #expect(counts.looks == before + 3)
  }

  @Test func `The next run begins with the counts of that moment`() throws {
    let worker = try world.add()
    counts.group = 5
    watch.begin(worker)
    watch.checkForKernelKills(of: worker)
    world.end(worker)
    // A worker that has ended isn't checked.
    counts.group = 6
    watch.checkForKernelKills(of: worker)
    try world.begin(worker)
    counts.group = 0
    watch.begin(worker)
    let before = world.logged.count
    watch.checkForKernelKills(of: worker)
    #expect(world.logged.count == before)
  }

  @Test func `The cause of a kill is the innermost limit that was reached, or the machine`() {
    func hits(_ cgroup: Int, _ above: Int, hidden: Bool = false) -> MemoryLimitHits {
      MemoryLimitHits(
        groups: [.init(path: "/a/own", count: cgroup), .init(path: "/a", count: above)],
        mayHaveHiddenLimits: hidden)
    }
    func cause(
      _ before: MemoryLimitHits?, _ now: MemoryLimitHits?, limit: ByteCount? = .megabytes(64)
    ) -> String {
      KernelKillWatch.cause(before: before, now: now, group: "/a/own", limit: limit)
    }
    #expect(cause(hits(0, 3), hits(1, 3)) == "over its limits.memory, 64 MB")
    #expect(cause(hits(0, 3), hits(1, 4)) == "over its limits.memory, 64 MB")
    // The worker had a limit, and another one was reached.
    #expect(cause(hits(0, 3), hits(0, 4)) == "over the memory limit of the cgroup /a")
    #expect(cause(hits(1, 3), hits(1, 3)) == "the machine was out of memory")
    #expect(
      cause(hits(0, 0, hidden: true), hits(0, 0, hidden: true))
        == "the machine, or a cgroup outside of this container, was out of memory")
    #expect(
      cause(hits(0, 0), hits(1, 0), limit: nil) == "over the memory limit of the cgroup /a/own")
    // No count can be read.
    #expect(cause(nil, nil) == "over its limits.memory, 64 MB")
    #expect(
      cause(nil, nil, limit: nil) == "the machine, or a cgroup that it is in, was out of memory")
  }

  @Test func `A worker that the kernel has killed gets a jetsam report with that cause`() throws {
    let worker = try world.add("web") { $0.limits.memory = .megabytes(64) }
    watch.keepReport(ofKernelKill: worker)
    let id = try #require(jetsam.ids.first)
    var records: [JetsamRecord?] = []
    jetsam.load(id) { records.append($0) }
    try loop.turn { !records.isEmpty }
    let record = try #require(records.first ?? nil)
    #expect(record.largest == "web" && record.workers.map(\.name) == ["web"])
    #expect(record.why.code == "out_of_memory" && record.why.text.contains("64 MB"))
    #expect(record.workers.first?.victimBecause?.code == "chosen_by_kernel")
    #expect(world.logged.count == 1 && world.logged[0].hasPrefix("error: "))
    // The engine doesn't know this worker.
    watch.keepReport(ofKernelKill: .forTest("x"))
    #expect(jetsam.ids.count == 1)
  }
}
