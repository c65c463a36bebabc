import Policy
import Testing

@testable import Lifecycle

/// Footprints are in KB, one at each suspension, a minute apart.
@Suite("Suspicion of a leak")
struct LeakSuspicionTests {
  private func growth(_ sizes: [Int]) -> FootprintGrowth {
    var growth = FootprintGrowth()
    for (index, size) in sizes.enumerated() {
      _ = growth.add(.kilobytes(Int64(size)), at: .zero + .seconds(Int64(index) * 60))
    }
    return growth
  }

  /// The numbers of the suspensions at which a suspicion was reported.
  private func reports(_ sizes: [Int]) -> [Int] {
    var growth = FootprintGrowth()
    return sizes.enumerated().compactMap { index, size in
      let suspicion = growth.add(.kilobytes(Int64(size)), at: .zero + .seconds(Int64(index) * 60))
      return suspicion == nil ? nil : index + 1
    }
  }

  @Test("A footprint that rises at each suspension is suspected from the twelfth on, once")
  func leak() throws {
    let sizes = (0..<100).map { 20_480 + $0 * 1024 }
    #expect(reports(Array(sizes.prefix(11))).isEmpty)
    #expect(reports(sizes) == [12])
    let leak = try #require(growth(Array(sizes.prefix(13))).suspicion)
    #expect(
      leak.sentence
        == "its footprint when it is suspended grew from 20 MB to 32 MB in 13 suspensions and "
        + "12 m: 1 MB at each"
    )
    let later = try #require(growth(sizes).suspicion)
    #expect(later.suspensions >= 90 && later.before < .megabytes(24) && later.perDay != nil)
  }

  @Test("A leak is suspected although each footprint varies", arguments: 1...200)
  func noise(_ seed: UInt64) {
    var random = Noise(seed)
    let sizes = (0..<60).map { 40_960 + $0 * 600 + random.next(upTo: 2400) }
    #expect(reports(sizes).count == 1, "\(sizes)")
  }

  @Test("A footprint that varies, and doesn't grow, isn't suspected", arguments: 1...200)
  func level(_ seed: UInt64) {
    var random = Noise(seed)
    let sizes = (0..<400).map { _ in 40_960 + random.next(upTo: 30_000) }
    #expect(reports(sizes).isEmpty, "\(sizes)")
  }

  /// A leak and a cache look the same until the cache levels off. A cache that is full at the tenth
  /// suspension is recognized.
  @Test("A cache that fills up and levels off isn't suspected", arguments: 1...200)
  func plateau(_ seed: UInt64) {
    var random = Noise(seed)
    let steps = 2 + random.next(upTo: 8)
    let sizes = (0..<200).map { index in
      20_480 + min(index, steps) * 40_960 / steps + random.next(upTo: 512)
    }
    #expect(reports(sizes).isEmpty, "\(sizes)")
  }

  @Test func `A footprint that comes nearer and nearer to a size isn't suspected`() {
    var sizes: [Int] = []
    var missing = 102_400.0
    for _ in 0..<200 {
      sizes.append(20_480 + 102_400 - Int(missing))
      missing *= 0.75
    }
    #expect(reports(sizes).isEmpty)
  }

  @Test("A saw-tooth isn't suspected", arguments: 2...11)
  func sawTooth(_ period: Int) {
    #expect(reports((0..<500).map { 20_480 + $0 % period * 4096 }).isEmpty)
  }

  @Test(
    "A suspicion is withdrawn when the footprint falls, and the same rise isn't suspected again")
  func comesBack() {
    let rise = (0..<40).map { 20_480 + $0 * 1024 }
    let sizes = rise + rise + rise + rise
    #expect(reports(sizes) == [12])
    #expect(growth(rise).suspicion != nil)
    for count in [45, 80, 120, 160] {
      #expect(growth(Array(sizes.prefix(count))).suspicion == nil, "after \(count)")
    }
  }

  @Test func `A suspicion is withdrawn when the footprint levels off`() {
    let sizes = (0..<300).map { 20_480 + min($0, 30) * 1024 }
    #expect(growth(Array(sizes.prefix(30))).suspicion != nil)
    #expect(growth(sizes).suspicion == nil)
  }

  @Test("A leak that is too slow for the last 24 suspensions is suspected by the whole run")
  func slow() throws {
    let sizes = (0..<1000).map { 102_400 + $0 * 40 }
    let all = reports(sizes)
    #expect(all.count == 1 && all[0] > 200 && all[0] < 800, "\(all)")
    let leak = try #require(growth(sizes).suspicion)
    #expect(leak.suspensions > 800 && leak.perSuspension == .kilobytes(40))
  }

  @Test func `A leak that begins late is suspected by the last suspensions`() {
    let sizes = (0..<1000).map { 102_400 + max(0, $0 - 900) * 2048 }
    let all = reports(sizes)
    #expect(all.count == 1 && all[0] > 900 && all[0] < 940, "\(all)")
  }

  @Test func `Growth of less than 4 MB, or a tenth of the footprint, isn't suspected`() {
    #expect(reports((0..<24).map { 1024 + $0 * 100 }).isEmpty)
    #expect(reports((0..<24).map { 1_024_000 + $0 * 2000 }).isEmpty)
  }

  @Test("One large or small footprint changes nothing", arguments: [5, 10, 17])
  func outlier(_ index: Int) {
    var sizes = (0..<30).map { 20_480 + $0 * 1024 }
    sizes[index] = index == 10 ? 200_000 : 10_000
    #expect(reports(sizes).count == 1)
  }

  @Test func `Footprints of restored workers that lack pages don't count as smaller`() {
    var growth = FootprintGrowth()
    var all: [LeakSuspicion] = []
    for index in 0..<40 {
      let size: Int64 = index % 2 == 0 ? 20 + Int64(index) * 2 : 5
      if let suspicion = growth.add(.megabytes(size), at: .zero + .seconds(Int64(index))) {
        all.append(suspicion)
      }
      growth.mayLackPages = true
    }
    #expect(all.count == 1)
  }

  @Test func `What is kept is bounded, and is the same after a checkpoint`() throws {
    var sample = growth((0..<5000).map { 20_480 + $0 % 100 })
    #expect(sample.recent.count == 24 && (12...24).contains(sample.whole.count))
    #expect(sample.whole.last.map { $0.number > 4500 } == true)
    let moved = sample
    sample.move(by: .seconds(5))
    #expect(sample != moved)
    sample.move(by: .seconds(-5))
    #expect(sample == moved)
  }
}

/// Reproducible numbers for a property test.
private struct Noise {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

  mutating func next(upTo limit: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(limit))
  }
}
