import Policy
import Testing

@testable import Daemon

@Suite("Signs of life")
struct WatchdogSignsTests {
  @Test func `Time during which the machine slept counts as a sign of life`() {
    var signs = WatchdogSigns(slept: .seconds(5))
    #expect(signs.sign(at: .zero + .seconds(10), slept: .seconds(5)) == nil)
    signs.seen(at: .zero + .seconds(12))
    let same = Duration.seconds(5) + .milliseconds(40)
    #expect(signs.sign(at: .zero + .seconds(20), slept: same) == .zero + .seconds(12))
    let night = Duration.seconds(3600)
    #expect(signs.sign(at: .zero + .seconds(4000), slept: night) == .zero + .seconds(4000))
    #expect(signs.sign(at: .zero + .seconds(4001), slept: night) == .zero + .seconds(4000))
  }
}
