import Drawing
import Testing

@Suite struct NumberTests {
  @Test(arguments: [
    (0.0, 2, "0.00"), (0.005, 2, "0.01"), (-0.001, 2, "0.00"), (-1.25, 1, "-1.3"), (12.0, 0, "12"),
    (999.96, 1, "1000.0"), (Double.infinity, 1, "?"), (Double.nan, 1, "?"),
  ])
  func `Numbers are formatted without Foundation`(value: Double, decimals: Int, text: String) {
    #expect(fixed(value, decimals) == text)
  }
}

@Suite struct AxisTests {
  @Test func `A logarithmic axis keeps values in order and within its range`() {
    let axis = LogarithmicAxis(of: [0.2, 3, 700])
    let positions = [0.2, 3, 700].map(axis.position)
    #expect(positions == positions.sorted())
    #expect(positions.allSatisfy { (0...1).contains($0) })
    #expect(axis.position(of: 0) == 0 && axis.position(of: .nan) == 0)
    #expect(axis.ticks.map(\.text).contains("100"))
    #expect(!LogarithmicAxis(of: []).ticks.isEmpty)
  }

  @Test(
    arguments: [
      (0, 1024), (1, 1024), (4096, 1024), (4097, 2048), (5 << 20, 2 << 20), (64 << 20, 16 << 20),
      (Int64.max, 1 << 60),
    ] as [(Int64, Int64)])
  func `Steps of bytes are powers of two, with at most the given number of steps`(
    top: Int64, step: Int64
  ) {
    #expect(RoundSteps.bytes(upTo: top, count: 4) == step)
  }

  @Test(arguments: [(0, 0.001), (0.9, 0.2), (30, 5), (61, 10), (3600, 600), (6e7, 864_0000)])
  func `Steps of time are round parts of minutes, hours and days`(top: Double, step: Double) {
    #expect(RoundSteps.seconds(upTo: top, count: 7) == step)
  }
}

@Suite struct SVGTests {
  @Test
  func `Any text is escaped in a picture, and only characters that XML can't hold are left out`() {
    #expect(
      xmlText("<a b=\"c\">&\u{1B}[2J\u{0}é→\u{FFFE}") == "&lt;a b=&quot;c&quot;&gt;&amp;[2Jé→")
    #expect(svgText(1, 2, "</text>", size: 9).contains(">&lt;/text&gt;</text>"))
  }
}
