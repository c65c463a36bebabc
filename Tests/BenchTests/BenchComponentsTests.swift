import Testing

@testable import Bench

@Suite struct HTTPAddressTests {
  @Test func `An HTTP URL of this machine is split into host, port and path`() throws {
    let address = try #require(HTTPAddress("http://127.0.0.1:8080/a/b?c=d#e"))
    #expect(address.port == 8080)
    #expect(address.path == "/a/b?c=d")
    #expect(address.host == "127.0.0.1:8080")
    #expect(HTTPAddress("http://localhost")?.path == "/")
    #expect(HTTPAddress("http://localhost")?.port == 80)
    #expect(HTTPAddress("http://localhost:1?x")?.path == "/?x")
  }

  @Test(arguments: [
    "", "8080", "https://127.0.0.1/", "http://example.org/", "http://127.0.0.1:0/",
    "http://127.0.0.1:65536/", "http://127.0.0.1:1:2/", "http://127.0.0.1:/x",
    "http://127.0.0.1:80/a b", "http://127.0.0.1:80/a\r\nX: y", "http:///x",
  ])
  func `A text that isn't an HTTP URL of this machine is refused`(text: String) {
    #expect(HTTPAddress(text) == nil)
  }
}

@Suite struct BenchStatisticsTests {
  @Test func `Median and percentile follow the textbook definitions`() throws {
    #expect(BenchStatistics([]) == nil)
    let one = try #require(BenchStatistics([7]))
    #expect([one.minimum, one.median, one.p95, one.maximum] == [7, 7, 7, 7])
    let hundred = try #require(BenchStatistics((1...100).map(Double.init).reversed()))
    #expect(hundred.minimum == 1 && hundred.median == 50.5)
    #expect(hundred.p95 == 95 && hundred.maximum == 100)
    #expect(BenchStatistics((1...20).map(Double.init))?.p95 == 19)
  }

  @Test func `The machine's description comes from the kernel`() {
    #expect(BenchMachine.chosen("always [madvise] never\n") == "madvise")
    #expect(BenchMachine.chosen("") == "unavailable")
    #expect(BenchMachine.processor(parsing: "processor\t: 0\nmodel name\t: A B\n") == "A B")
    #expect(BenchMachine.processor(parsing: "") == "unknown processor")
  }
}

@Suite struct BenchRenderingTests {
  private func report(
    command: [String] = ["/bin/server"], samples: [BenchMechanism: [Double]]
  ) throws -> BenchReport {
    var report = BenchReport(
      version: "1", machine: .describe(), command: command, request: nil, level: 1, rounds: 3,
      rest: "frozen", firstLaunchMilliseconds: 100,
      mechanisms: BenchMechanism.allCases.map { BenchMechanismResult($0) },
      hibernations: [
        BenchHibernation(
          milliseconds: 50, movedBytes: 16 << 20, imageBytes: 4 << 20, anonymousBefore: 17 << 20,
          anonymousAfter: 1 << 20)
      ], reconnections: 0)
    for index in report.mechanisms.indices {
      let values = samples[report.mechanisms[index].mechanism] ?? []
      report.mechanisms[index].milliseconds = values
      report.mechanisms[index].statistics = BenchStatistics(values)
      if values.isEmpty { report.mechanisms[index].refusal = "none <here> & now" }
    }
    return report
  }

  @Test func `The table has one row for each mechanism, and says what a sleep frees`() throws {
    let report = try report(samples: [
      .signal: [1, 1, 1], .cached: [17, 17, 20], .relaunch: [340, 340, 340],
    ])
    let lines = report.rendered(width: 200, color: false).split(separator: "\n").map(String.init)
    #expect(lines[0].hasPrefix("mechanism (ms)"))
    for mechanism in BenchMechanism.allCases {
      #expect(lines.filter { $0.hasPrefix(mechanism.title + " ") }.count == 1, "\(mechanism)")
    }
    let text = lines.joined(separator: "\n")
    #expect(text.contains("not measured: none <here> & now"))
    #expect(text.contains("resuming is 20.0 times as fast as relaunching"))
    #expect(text.contains("hibernating frees 16.0 MB; waking takes"))
    #expect(text.contains("4.0 times smaller") && text.contains("320 MB/s"))
  }

  @Test func `No line of the table is wider than the terminal`() throws {
    let report = try report(command: ["/bin/x", "a b"], samples: [.signal: [0.5]])
    for width in [80, 100] {
      for line in report.rendered(width: width, color: false).split(separator: "\n") {
        #expect(line.count <= width, "\(line)")
      }
    }
  }

  @Test func `The picture has every measurement, and escapes hostile names`() throws {
    let report = try report(
      command: ["/bin/<script>&\"\u{1B}[2J"], samples: [.signal: [0.4, 0.5], .cached: [1200]])
    let picture = report.picture
    #expect(picture.split(separator: "<circle").count - 1 == 3)
    #expect(!picture.contains("<script>") && !picture.contains("\u{1B}"))
    #expect(picture.contains("none &lt;here&gt; &amp; now"))
    #expect(!picture.contains("nan") && !picture.contains("?</text>"))
  }

  @Test func `A picture without any measurement is still a whole SVG`() throws {
    let picture = try report(samples: [:]).picture
    #expect(picture.hasSuffix("</svg>\n"))
  }
}
