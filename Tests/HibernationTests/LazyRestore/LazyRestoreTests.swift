import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Resumes whose pages are filled while the worker runs.
@Suite(.serialized, .needsCgroup)
struct LazyRestoreTests {
  let service = HibernationService()

  /// Returns true if a worker may have a userfaultfd on this machine.
  static func isPermitted() -> Bool { geteuid() == 0 }

  private func sleep(
    _ victim: Victim, at path: String, overlay: Bool = false
  ) throws -> HibernationSummary {
    try service.awaitFill(of: victim.target.name)
    return try victim.sleep(service, at: path, restore: .lazy, overlay: overlay)
  }

  @discardableResult
  private func wake(
    _ victim: Victim, from path: String, learns: Bool = true, keepsBase: Bool = false
  ) throws -> ResumeSummary {
    try service.resume(
      victim.target, from: RestingImage(path: path, .lazy(learns: learns)), keepsBase: keepsBase)
  }

  @Test(
    "A process with a thread in every kind of blocking call keeps every byte over lazy restores",
    .needsUserfaults,
    arguments: [false, true])
  func torture(overlays: Bool) throws {
    let victim = try Victim(ready: "torture", "8", "16", "7", parking: .frozen)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    for round in 1...Nightly.rounds(10, of: 30) {
      let table = try ProcessStatus.read(victim.process.pid).descriptorTableSize
      let slept = try sleep(victim, at: path, overlay: overlays)
      // The table has its old size: to enlarge it, the kernel would wait for all processors.
      #expect(try ProcessStatus.read(victim.process.pid).descriptorTableSize == table)
      #expect(slept.lazyRefusal == nil)
      // The second image is complete: most of the working set is in chunks of the first that are
      // filled in the background.
      if overlays, round > 2 { #expect(slept.unchanged > 4 << 20, "\(round): \(slept)") }
      #expect(try victim.anonymousMemory() <= 64 * pageSize)
      let woken = try wake(victim, from: path, keepsBase: overlays)
      #expect(woken.eagerReason == nil)
      // The working set soon has all pages: `sum` reads everything.
      if round == 1 { #expect(woken.backgroundFill > 4 << 20) }
      try #require(try victim.ask("sum") == sum, "round \(round)")
      if round % 10 == 0 { #expect(try victim.ask("wake").hasPrefix("woke")) }
      try service.awaitFill(of: victim.target.name)
      #expect(access(path, F_OK) != 0)
      #expect(try !hasUserfaults(victim.process.pid))
      #expect((access(path + ".base", F_OK) == 0) == overlays)
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
    service.forget(victim.target.name)
    try service.awaitFill(of: victim.target.name)
    #expect(access(path + ".base", F_OK) != 0)
  }

  @Test(
    "A program that changes its mappings and forks while pages are missing keeps its memory",
    .needsUserfaults,
    arguments: Nightly.oneOfEach(
      [1, 4, 12].map { threads in [false, true].map { (threads, $0) } }))
  func churn(threads: Int, overlays: Bool) throws {
    let victim = try Victim(ready: "churn", "\(threads)", "6", "64", parking: .frozen)
    let path = Fixture.imagePath()
    for round in 1...Self.churnRounds {
      // The learned working set is dropped: over time, it would leave no page missing.
      let name = victim.target.name
      _ = try service.wait { (h) throws(HibernationError) in h.workingSets[name] = nil }
      _ = try sleep(victim, at: path, overlay: overlays)
      try victim.send("churn \(round)")
      let woken = try wake(victim, from: path, keepsBase: overlays)
      #expect(woken.backgroundFill > 1 << 20, "round \(round): \(woken)")
      // This is called first, because it reports the reason if a worker had to be killed.
      try service.awaitFill(of: name)
      let answer = try victim.line()
      try #require(answer.hasSuffix("errors 0"), "round \(round): \(answer)")
    }
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
  }

  @Test(
    "A program that unmaps and drops memory while pages are missing isn't halted for that",
    .needsUserfaults)
  func neverHalted() throws {
    let victim = try Victim(ready: "churn", "6", "6", "64", "drops", parking: .frozen)
    let path = Fixture.imagePath()
    let name = victim.target.name
    for round in 1...Self.churnRounds {
      _ = try service.wait { (h) throws(HibernationError) in h.workingSets[name] = nil }
      _ = try sleep(victim, at: path)
      try victim.send("churn \(round)")
      try wake(victim, from: path)
      try service.awaitFill(of: name)
      let answer = try victim.line()
      try #require(answer.hasSuffix("errors 0"), "round \(round): \(answer)")
      let last = try service.wait { (h) throws(HibernationError) in h.histories[name]?.lastLazy }
      #expect(last != nil && last?.halt == nil, "round \(round)")
    }
  }

  /// The kernel doesn't find the mapping for which it had to wait, and reports that first.
  @Test(
    "Memory that is moved at the moment when a page of it is filled keeps that page",
    .needsUserfaults)
  func movedWhileFilled() throws {
    let victim = try Victim([try Fixture.compile("checkerboard"), "16384"], parking: .frozen)
    #expect(try victim.line().hasPrefix("ready"))
    let path = Fixture.imagePath()
    let name = victim.target.name
    for page in stride(from: 0, through: 12000, by: 2000) {
      _ = try sleep(victim, at: path)
      try victim.send("move \(page)")
      // What it needs to get there is learned first.
      try wake(victim, from: path, learns: page == 0)
      try service.awaitFill(of: name)
      try #require(try victim.line() == "moved")
      try #require(try victim.ask("verify") == "whole", "after page \(page)")
    }
  }

  @Test(
    "Threads that drop memory all the time don't keep another one from what it needs",
    .needsUserfaults)
  func storm() throws {
    let victim = try Victim([try Fixture.compile("checkerboard"), "2048", "4"], parking: .frozen)
    #expect(try victim.line().hasPrefix("ready"))
    let path = Fixture.imagePath()
    _ = try sleep(victim, at: path)
    try victim.send("storm")
    try wake(victim, from: path)
    try service.awaitFill(of: victim.target.name)
    #expect(try victim.line() == "whole")
  }

  static let churnRounds = Nightly.rounds(5, of: 20, variable: "DORMOUSE_CHURN_ROUNDS")

  @Test(.needsUserfaults)
  func `Pages that another process has touched during the sleep are restored`() throws {
    let victim = try Victim(ready: "churn", "2", "4", "64", parking: .frozen)
    let path = Fixture.imagePath()
    for older in [false, true] {
      var features = KernelFeatures.detect()
      if older { features.pagemapScan = false }
      let service = HibernationService(features: features)
      try victim.sleep(service, at: path, restore: .lazy)
      let target = victim.target
      let ranges = try ImageReader(path: path).chunks.filter(\.isBackgroundFilled).flatMap(\.ranges)
      let memory = try ProcessMemory(pid: victim.process.pid)
      for (index, range) in ranges.enumerated() {
        // The kernel does this to the rseq area. A page is written, or only read (then it is the
        // zero page).
        let last = range.address + range.length - 8
        if index % 2 == 0 { try memory.writeBytes([1, 2, 3, 4], at: last) }
        _ = try memory.readBytes(at: range.address, count: 8)
      }
      try service.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
      #expect(try victim.ask("verify").hasSuffix("errors 0"))
      try service.awaitFill(of: target.name)
      #expect(try victim.ask("verify").hasSuffix("errors 0"))
    }
  }

  @Test(.needsUserfaults)
  func `A lazily restored python server answers on the same connection`() throws {
    guard Program.find("python3") != nil else {
      return notTestedHere("python3 is not installed")
    }
    let victim = try Victim(
      ["python3", Fixture.path("http_state.py"), "--megabytes", "10"], parking: .frozen)
    let port = try #require(Int(try victim.line().split(separator: " ")[1]))
    let connection = try HTTPConnection(port: port)
    #expect(try connection.get("/count") == "1")
    let digest = try connection.get("/digest")
    let path = Fixture.imagePath()
    for round in 2...6 {
      _ = try sleep(victim, at: path)
      let woken = try wake(victim, from: path)
      #expect(woken.backgroundFill > 6 << 20)
      #expect(try connection.get("/count") == "\(round)")
      if round % 2 == 0 { #expect(try connection.get("/digest") == digest) }
    }
    // The worker is hibernated again, and restored eagerly.
    _ = try sleep(victim, at: path)
    try victim.wake(service, from: path)
    #expect(try connection.get("/digest") == digest)
  }

  @Test(.needsUserfaults)
  func `Missing pages count as the worker's memory until all of them are filled`() throws {
    let victim = try Victim(ready: "churn", "2", "16", "64", parking: .frozen)
    let pid = victim.process.pid
    let before = try #require(try Footprint.measure(pid)).footprint
    let path = Fixture.imagePath()
    _ = try sleep(victim, at: path)
    let woken = try wake(victim, from: path)
    let missing = try #require(woken.missing)
    #expect(missing.bytes > 8 << 20)
    var samples = 0
    repeat {
      let still = Int64(missing.bytes)
      let measured = try #require(try Footprint.measure(pid)).footprint
      #expect(
        measured + still >= before - 128 * Int64(pageSize), "look \(samples): \(still) missing")
      samples += 1
    } while missing.bytes > 0
    try service.awaitFill(of: victim.target.name)
    #expect(missing.bytes == 0)
    let after = try #require(try Footprint.measure(pid)).footprint
    #expect(abs(after - before) <= 256 * Int64(pageSize))
  }

  @Test("The first restore is eager if the worker isn't resumed to learn its working set")
  func nothingKnown() throws {
    let victim = try Victim(ready: "churn", "2", "2", "64", parking: .frozen)
    let path = Fixture.imagePath()
    _ = try sleep(victim, at: path)
    let woken = try wake(victim, from: path, learns: false)
    #expect(woken.backgroundFill == 0)
    #expect(woken.eagerReason != nil)
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
  }

  @Test func `A restore without a cgroup is eager, and says so`() throws {
    let victim = try Victim(ready: "churn", "2", "2", "64", parking: .traced)
    let path = Fixture.imagePath()
    let refusal = try sleep(victim, at: path).lazyRefusal
    #expect(refusal == "lazy restore needs a cgroup of its own")
    #expect(try wake(victim, from: path).eagerReason == "no cgroup of its own")
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
  }

  @Test(.enabled(if: geteuid() == 0 && Program.find("setpriv") != nil, "takes root, and setpriv"))
  func `A restore without permission for userfaultfd is eager, and says so`() throws {
    let churn = try Fixture.compile("churn")
    let victim = try Victim(
      ready: [
        "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", churn, "2", "2", "64",
      ],
      parking: .frozen)
    let path = Fixture.imagePath()
    let slept = try sleep(victim, at: path)
    guard try readText("/proc/sys/vm/unprivileged_userfaultfd").hasPrefix("0") else {
      return notTestedHere("any user may use userfaultfd here")
    }
    #expect(slept.lazyRefusal?.contains("isn't permitted") == true)
    #expect(try wake(victim, from: path).eagerReason != nil)
    #expect(try victim.ask("verify").hasSuffix("errors 0"))
  }
}
