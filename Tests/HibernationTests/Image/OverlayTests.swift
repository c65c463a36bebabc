import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The second hibernation and later ones, which write only changed pages.
@Suite(.serialized)
struct OverlayTests {
  enum Way: String, CaseIterable, CustomTestStringConvertible {
    case tracked, compared
    var testDescription: String { rawValue }

    static let available = KernelFeatures.detect().writeTracking ? allCases : [.compared]

    var service: HibernationService {
      var features = KernelFeatures.detect()
      if self == .compared { features.writeTracking = false }
      return HibernationService(features: features)
    }
  }

  /// All pairs of a way of tracking and a way of resting.
  static let rows: [[(Way, Victim.Parking)]] = Way.available.map { way in
    Victim.Parking.available.map { (way, $0) }
  }

  @Test(
    "A process with a thread in every kind of blocking call keeps every byte over many overlays",
    arguments: Nightly.oneOfEach(rows))
  func torture(way: Way, parking: Victim.Parking) throws {
    let service = way.service
    let victim = try Victim(ready: "torture", "8", "16", "7", parking: parking)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    var first: UInt64 = 0
    for round in 0..<Nightly.rounds(8, of: 40) {
      let slept = try victim.nap(service, at: path)
      if round == 0 { first = slept.written }
      if round > 0 {
        #expect(slept.unchanged > slept.moved / 3 * 2, "round \(round): \(slept)")
        #expect(slept.written < first / 4, "round \(round): \(slept)")
        #expect(slept.imageLength > first)
        if way == .tracked { #expect(slept.compared < 2 << 20, "\(slept)") }
      }
      #expect(slept.trackingRefusal == nil || way == .compared)
      #expect(try victim.anonymousMemory() <= 64 * pageSize)
      try victim.rise(service, from: path)
      #expect(access(path, F_OK) != 0)
      #expect(access(path + ".base", F_OK) == 0)
      let answer = try victim.ask("sum")
      try #require(answer == sum, "round \(round): \(answer), not \(sum); \(slept)")
    }
    #expect(try victim.ask("wake").hasPrefix("woke"))
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
    try checkNothingStays(victim, service, path)
  }

  @Test(
    "Every byte is right after any changes that a program makes to its memory between overlays",
    arguments: Nightly.oneOfEach(rows))
  func layers(way: Way, parking: Victim.Parking) throws {
    let service = way.service
    let victim = try Victim(ready: "layers", "1024", parking: parking)
    let path = Fixture.imagePath()
    var overlays = 0
    for round in 1...Self.rounds {
      let slept = try victim.nap(service, at: path)
      overlays += slept.unchanged > 0 ? 1 : 0
      try victim.rise(service, from: path)
      try #require(try victim.ask("verify") == "same", "round \(round): \(slept)")
      // Some rounds change few pages, some nearly all.
      _ = try victim.ask("change \(round) \(round % 7 == 0 ? 1200 : round % 5 * 40)")
      try #require(try victim.ask("verify") == "same", "round \(round), before")
    }
    #expect(overlays > Self.rounds / 2)
    #expect(overlays < Self.rounds - 1, "too much had changed, sometimes")
    try checkNothingStays(victim, service, path)
  }

  @Test("A program that writes to all of its pages what is there changes nothing in the next image")
  func rewrites() throws {
    guard Way.available.contains(.tracked) else { return notTestedHere("Linux 6.7") }
    let service = Way.tracked.service
    let victim = try Victim(ready: "layers", "1024", parking: .traced)
    let path = Fixture.imagePath()
    let first = try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    #expect(try victim.ask("rewrite") == "rewritten")
    let second = try victim.nap(service, at: path)
    #expect(second.written < first.written / 4, "\(second)")
    #expect(second.compared > second.moved / 2, "\(second)")
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
    // Pages that really differ are written, even if most of a chunk is equal.
    try victim.send("change 3 500")
    #expect(try victim.line() == "changed 500")
    try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test(
    "Zeros that a huge page adds between pages don't make the next image a complete one",
    arguments: Way.available)
  func hugeZeros(way: Way) throws {
    let service = way.service
    // With pages of 64 KiB a huge page has 512 MB.
    guard pageSize < 65536 else { return notTestedHere("four huge pages are 2 GB") }
    let hugePages = 4 * pageSize / 8 * pageSize
    let victim = try Victim(ready: "thp", "\(hugePages >> 20)", "sparse", parking: .frozen)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    let second = try victim.nap(service, at: path)
    if second.moved > hugePages {
      #expect(second.unchanged >= 4 * pageSize, "\(second)")
      #expect(access(path + ".base", F_OK) == 0)
    } else {
      notTestedHere("the kernel makes no huge page of what a resume writes")
    }
    try victim.rise(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  /// The number of rounds. DORMOUSE_CHURN_ROUNDS sets another one.
  static let rounds = Nightly.rounds(24, of: 48, variable: "DORMOUSE_CHURN_ROUNDS")

  @Test(
    "A program whose threads map, move, drop and fork keeps every page over overlays",
    arguments: Nightly.oneOfEach(rows))
  func churn(way: Way, parking: Victim.Parking) throws {
    let service = way.service
    let victim = try Victim(ready: "churn", "3", "6", "64", parking: parking)
    let path = Fixture.imagePath()
    for round in 1...Self.rounds / 2 {
      try victim.nap(service, at: path)
      try victim.rise(service, from: path)
      let answer = try victim.ask(round % 3 == 0 ? "churn \(round)" : "verify")
      try #require(answer.hasSuffix("errors 0"), "round \(round): \(answer)")
    }
  }

  @Test(
    "A program that executes itself again keeps its memory over overlays, and is tracked again",
    arguments: Way.available)
  func exec(way: Way) throws {
    let service = way.service
    let victim = try Victim(ready: "layers", "512", parking: .frozen)
    let path = Fixture.imagePath()
    for _ in 0..<3 {
      for _ in 0..<2 {
        try victim.nap(service, at: path)
        try victim.rise(service, from: path)
        try #require(try victim.ask("verify") == "same")
      }
      try #require(try victim.ask("exec").hasPrefix("ready"))
    }
    // The program is tracked again.
    let slept = try victim.nap(service, at: path)
    #expect(slept.trackingRefusal == nil || way == .compared)
    try victim.rise(service, from: path)
    let second = try victim.nap(service, at: path)
    if way == .tracked { #expect(second.compared < second.moved / 2) }
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test("Overlays cover all processes of a tree, also new ones", arguments: Way.available)
  func tree(way: Way) throws {
    let service = way.service
    let victim = try Victim(ready: "forktree", "8", "3", "5", parking: .frozen)
    let sum = try victim.ask("sum")
    let path = Fixture.imagePath()
    for round in 0..<5 {
      let slept = try victim.nap(service, at: path)
      #expect(slept.processes == 4)
      if round > 0 { #expect(slept.unchanged > 0, "\(slept)") }
      try victim.rise(service, from: path)
      #expect(try victim.ask("sum") == sum)
    }
  }

  @Test("If many pages have changed, all pages are written again", arguments: Way.available)
  func compaction(way: Way) throws {
    let service = way.service
    let victim = try Victim(ready: "layers", "512", parking: .frozen)
    let path = Fixture.imagePath()
    try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    let base = try ImageReader(alone: path + ".base").id
    let little = try victim.nap(service, at: path)
    #expect(little.unchanged > 0)
    try victim.rise(service, from: path)
    #expect(try ImageReader(alone: path + ".base").id == base)
    _ = try victim.ask("grow 2000")
    let much = try victim.nap(service, at: path)
    #expect(much.unchanged == 0)
    #expect(much.imageLength == much.written)
    #expect(access(path + ".base", F_OK) != 0, "the old base is of no more use")
    try victim.rise(service, from: path)
    #expect(try ImageReader(alone: path + ".base").id != base)
    let after = try victim.nap(service, at: path)
    #expect(after.unchanged > after.moved / 3 * 2)
    try victim.rise(service, from: path)
    #expect(try victim.ask("verify") == "same")
  }

  @Test func `A hibernation without overlays removes the base and stops tracking writes`() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "layers", "256", parking: .frozen)
    let path = Fixture.imagePath()
    try victim.nap(service, at: path)
    try victim.rise(service, from: path)
    #expect(access(path + ".base", F_OK) == 0)
    let slept = try victim.sleep(service, at: path)
    #expect(slept.unchanged == 0)
    #expect(access(path + ".base", F_OK) != 0)
    try victim.wake(service, from: path)
    #expect(access(path + ".base", F_OK) != 0)
    #expect(
      try MemoryMapping.all(of: victim.process.pid).allSatisfy {
        !$0.flags.contains(.writesWatched)
      })
    #expect(try victim.ask("verify") == "same")
  }

  /// Checks that nothing stays of a worker that has ended, or isn't hibernated any more.
  private func checkNothingStays(
    _ victim: Victim, _ service: HibernationService, _ path: String
  ) throws {
    // Dormouse's descriptors don't stay in the program.
    #expect(try Eligibility.foreignUserfaults(of: victim.process.pid).isEmpty)
    let name = victim.target.name
    service.forget(name)
    _ = try service.wait { (h) throws(HibernationError) in
      #expect(h.bases[name] == nil && h.trackers[name] == nil)
    }
    #expect(access(path + ".base", F_OK) != 0)
  }
}

extension Victim {
  /// Suspends and hibernates the program, with an overlay if that is possible.
  @discardableResult
  func nap(_ service: HibernationService, at path: String) throws -> HibernationSummary {
    try sleep(service, at: path, overlay: true)
  }

  /// Wakes the program, and leaves a base.
  func rise(_ service: HibernationService, from path: String) throws {
    try wake(service, from: path, keepsBase: true)
  }
}
