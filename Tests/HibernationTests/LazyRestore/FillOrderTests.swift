import TestSupport
import Testing

@testable import Hibernation

/// The order in which the chunks of a background fill are filled.
struct FillOrderTests {
  /// Makes an order in which chunk n is the nth by address.
  private static func order(_ count: Int) -> FillOrder {
    FillOrder(Array(0..<count))
  }

  private static func next(_ count: Int, of order: inout FillOrder) -> [Int?] {
    (0..<count).map { _ in order.claimNext() }
  }

  @Test func `Without a thread that waits, chunks are filled by their addresses`() {
    var order = FillOrder([8, 9, 7])
    let all = Self.next(4, of: &order)
    #expect(all == [8, 9, 7, nil])
  }

  @Test func `The fill follows a worker upwards and downwards, and then does the rest`() {
    var order = Self.order(10)
    func want(_ chunk: Int, then count: Int) -> [Int?] {
      order.prioritizeNeighbors(of: chunk)
      return order.claim(chunk) ? Self.next(count, of: &order) : []
    }
    let (up, down, upAgain) = (want(4, then: 1), want(3, then: 2), want(7, then: 2))
    #expect(up == [5])
    #expect(down == [2, 1])
    #expect(upAgain == [8, 9])
    let parking = Self.next(3, of: &order)
    #expect(parking == [6, 0, nil])
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
        order.prioritizeNeighbors(of: chunk)
        if order.claim(chunk) { claimed.append(chunk) }
      }
      guard let chunk = order.claimNext() else { break }
      claimed.append(chunk)
    }
    #expect(claimed.sorted() == Array(0..<count))
  }
}
