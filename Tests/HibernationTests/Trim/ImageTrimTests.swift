import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Workers that run while their memory is in an image (userfaultfd).
@Suite(.serialized, .needsUserfaults)
struct ImageTrimTests {
  let service = HibernationService()

  @Test(
    "A process with a thread in every kind of blocking call keeps every byte over trims",
    arguments: [false, true])
  func torture(keepsBase: Bool) throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "8", "16", "7"])
    let sum = try victim.ask("sum")
    for round in 1...Nightly.rounds(5, of: 30) {
      var summary = try service.trim(victim.target, to: path, keepsBase: keepsBase)
      // `sum` reads everything, so the working set soon has all pages.
      if round == 1 {
        // Its memory was copied while it ran: the image has only what has changed since. On a busy
        // machine there isn't always a moment to begin that.
        let isCopiedAhead = try eventually {
          let image = try ImageReader(path: path)
          if (image.reference?.bytes ?? 0) > image.dataLength / 2 { return true }
          try service.fill(victim.target)
          summary = try service.trim(victim.target, to: path, keepsBase: keepsBase)
          return false
        }
        #expect(isCopiedAhead)
        #expect(summary.swapped > 4 << 20, "\(summary)")
        #expect(summary.residentAfter < summary.residentBefore - 4 << 20, "\(summary)")
      }
      #expect(summary.mechanism == .userfaultfd)
      #expect(summary.stoppedFor > .zero)
      #expect(try victim.target.isFrozen() == false)
      try #require(try victim.ask("sum") == sum, "round \(round)")
      #expect(try victim.ask("wake").hasPrefix("woke"))
    }
    #expect(fileExists(path))
    let filled = try service.fill(victim.target)
    #expect(filled.swapped == 0)
    #expect(!fileExists(path))
    #expect(fileExists(path + ".base") == keepsBase)
    #expect(try !hasUserfaults(victim.process.pid))
    #expect(try victim.ask("sum") == sum)
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test("With `auto`, no image is written if the policy permits none")
  func noImage() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "8", "4", "7"])
    var request = TrimRequest(
      HibernationRequest(victim.target, to: path), record: path + ".trim", mechanism: .auto,
      imageObstacle: "no images here")
    // Swap may be on.
    switch Result(catching: { try service.trim(request) }) {
    case .success(let summary): #expect(summary.mechanism != .userfaultfd)
    case .failure(let error): #expect("\(error)".contains("; or: no images here"), "\(error)")
    }
    #expect(isGone(path))
    request.mechanism = .userfaultfd
    let summary = try service.trim(request)
    #expect(summary.mechanism == .userfaultfd)
  }

  @Test("What a trimmed worker doesn't touch stays in its image, and a hibernation takes it over")
  func staysOut() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("torture"), "16", "4", "7"])
    let sum = try victim.ask("sum")
    let summary = try service.trim(victim.target, to: path)
    let missing = try #require(summary.missing)
    #expect(missing.isTrimmed)
    let before = missing.bytes
    #expect(before > 8 << 20, "\(summary)")
    for _ in 0..<20 { #expect(try victim.ask("wake").hasPrefix("woke")) }
    #expect(missing.bytes > before / 2)
    try service.awaitFill(of: victim.target.name)
    #expect(missing.bytes == 0)
    #expect(try victim.ask("sum") == sum)
    try service.trim(victim.target, to: path)
    try service.awaitFill(of: victim.target.name)
    #expect(try victim.sleep(service, at: path).moved > 8 << 20)
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "A worker that changes its mappings and forks while it is trimmed keeps its memory",
    arguments: [1, 4], [false, true])
  func churn(threads: Int, keepsBase: Bool) throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("churn"), "\(threads)", "6", "64"])
    for round in 1...LazyRestoreTests.churnRounds {
      let name = victim.target.name
      _ = try service.wait { (h) throws(HibernationError) in h.workingSets[name] = nil }
      try service.trim(victim.target, to: path, keepsBase: keepsBase)
      try victim.send("churn \(round)")
      let answer: String
      do { answer = try victim.line() } catch {
        // This reports why the worker had to be killed.
        try service.awaitFill(of: name)
        throw error
      }
      try service.awaitFill(of: name)
      try #require(answer.hasSuffix("errors 0"), "round \(round): \(answer)")
    }
    #expect(try victim.isWhole)
  }

  @Test("A trimmed worker that ends leaves no image, and nothing waits for it")
  func ends() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("churn"), "2", "6", "64"])
    try service.trim(victim.target, to: path)
    #expect(fileExists(path))
    kill(victim.process.pid, SIGKILL)
    service.forget(victim.target.name)
    #expect(try eventually { !fileExists(path) })
  }

  @Test("A worker whose image would be encrypted isn't trimmed by userfaultfd")
  func encrypted() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("churn"), "2", "6", "64"])
    let target = victim.target
    let error = #expect(throws: HibernationError.self) {
      _ = try service.wait { (h) throws(HibernationError) in
        var image = HibernationRequest(target, to: path)
        image.isSealed = true
        return try h.trim(
          TrimRequest(image, record: path + ".trim", mechanism: .userfaultfd))
      }
    }
    // A reload can change that for the running worker.
    #expect(error?.aftermath == .intact)
    #expect(try victim.isWhole)
  }
}
