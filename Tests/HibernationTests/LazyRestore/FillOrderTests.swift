import TestSupport
import Testing

@testable import Hibernation

/// The order in which the chunks of a background fill are filled.
struct FillOrderTests {
  /// Chunk n begins at this address.
  private static func order(_ count: Int) -> FillOrder {
    FillOrder((0..<count).map { ($0, UInt64($0) << 18) })
  }

  @Test("Without a thread that waits, chunks are filled by their addresses")
  func ascending() {
    var order = FillOrder([(7, 0x3000), (8, 0x1000), (9, 0x2000)])
    #expect([order.claimNext(), order.claimNext(), order.claimNext()] == [8, 9, 7])
    #expect(order.claimNext() == nil)
  }

  @Test("The fill follows a worker upwards and downwards, and then does the rest")
  func follows() {
    var order = Self.order(10)
    order.isWanted(4)
    #expect(order.claim(4))
    #expect(order.claimNext() == 5)
    order.isWanted(3)
    #expect(order.claim(3))
    #expect([order.claimNext(), order.claimNext()] == [2, 1])
    order.isWanted(7)
    #expect(order.claim(7))
    #expect([order.claimNext(), order.claimNext()] == [8, 9])
    #expect([order.claimNext(), order.claimNext()] == [6, 0])
    #expect(order.claimNext() == nil)
  }

  @Test("Each chunk is claimed once, whatever is wanted meanwhile", arguments: 0..<UInt64(200))
  func complete(seed: UInt64) {
    var random = TestRandom(seed: seed)
    let count = Int.random(in: 0...40, using: &random)
    var order = Self.order(count)
    var claimed: [Int] = []
    while true {
      if count > 0, Bool.random(using: &random) {
        let chunk = Int.random(in: 0..<count, using: &random)
        order.isWanted(chunk)
        if order.claim(chunk) { claimed.append(chunk) }
      }
      guard let chunk = order.claimNext() else { break }
      claimed.append(chunk)
    }
    #expect(claimed.sorted() == Array(0..<count))
  }
}
