import Testing

@testable import FootprintTrace

@Suite struct TerminalTests {
  @Test func `The terminal's plot shows the footprint, its axes and its warning`() {
    let lines = renderRecording(
      .sawtooth(), style: TerminalStyle(width: 60, rows: 6))
    print(lines.joined(separator: "\n"))
    #expect(lines[1].contains("▼"))
    let plot = lines.filter { $0.contains("│") || $0.contains("┤") }
    #expect(plot.count == 6)
    // The curve starts low and falls at the warning.
    let lowest = Array(plot[plot.count - 1])
    #expect(lowest.last == "█" && lowest[7] != " ")
    #expect(lines.contains { $0.hasPrefix("    0 └┬──") })
    #expect(lines.contains { $0.contains("9.5 s") && $0.contains("9 MB freed") })
  }

  @Test(arguments: [1, 24, 40, 79, 200], [false, true])
  func `No line is wider than the terminal or has characters that it can't show`(
    width: Int, ascii: Bool
  ) {
    let marks = (0..<40).map {
      FootprintMark(
        at: Double($0) / 2, kind: FootprintMark.Kind.allCases[$0 % 10],
        text: String(repeating: "long \u{1B}[2J→ ", count: 30), from: "background", to: "été")
    }
    var recording = Recording.sawtooth(name: "näme\n\u{1B}[31m")
    recording.marks = marks
    let style = TerminalStyle(width: width, rows: 9, ascii: ascii)
    for line in renderRecording(recording, style: style, maxMarks: nil) {
      #expect(line.count <= max(width, 24), "\(line)")
      #expect(!line.unicodeScalars.contains { $0.value < 0x20 }, "\(line)")
      #expect(!ascii || line.utf8.count == line.unicodeScalars.count, "\(line)")
    }
  }

  @Test func `Colours show the state, and appear only on request`() {
    let plain = renderRecording(.sawtooth(), style: TerminalStyle()).joined()
    #expect(!plain.contains("\u{1B}"))
    let colored = renderRecording(.sawtooth(), style: TerminalStyle(color: true)).joined()
    #expect(colored.contains("\u{1B}[32m"))
  }

  @Test func `A momentary peak is visible in the picture of a day of samples`() {
    var samples = (0..<86_400).map { (Double($0), 1.0) }
    samples[40_000].1 = 100
    let lines = renderRecording(.steps(samples), style: TerminalStyle(width: 50, rows: 8))
    #expect(lines.filter { $0.contains("█") }.count >= 6)
  }

  @Test func `Recordings of 0 bytes and of a single moment have pictures`() {
    for recording in [Recording.steps([(0, 0)]), .steps([(0, 5)]), .steps([(0, 0), (0, 9)])] {
      #expect(renderRecording(recording, style: TerminalStyle()).count > 10)
      #expect(renderLive(recording, style: TerminalStyle()).count > 10)
      #expect(recording.picture().hasSuffix("</svg>\n"))
    }
  }

  @Test func `A long list of marks is cut, and its last line says so`() {
    let marks = (0..<50).map { FootprintMark(at: Double($0), kind: .note, text: "n") }
    let recording = Recording.steps([(0, 5), (60, 5)], marks: marks)
    let lines = renderRecording(recording, style: TerminalStyle(), maxMarks: 10)
    #expect(lines.last == "… and 40 more (--marks all)")
  }
}

@Suite struct SVGPictureTests {
  @Test func `Hostile names don't damage an SVG picture, and all its coordinates are numbers`() {
    let recording = Recording.sawtooth(name: "</title><script>&\u{1B}[2J")
    for picture in [
      recording.picture(),
      RecordingComparison(("<a>&", recording), ("b\u{1}", recording)).picture(recording, recording),
    ] {
      #expect(!picture.contains("<script>") && !picture.contains("\u{1B}"))
      #expect(!picture.contains("nan") && !picture.contains("inf") && !picture.contains("\"?"))
      #expect(picture.contains("<title>") && picture.contains("<desc>"))
      #expect(picture.contains("prefers-color-scheme: dark"))
    }
  }

  @Test func `Only kinds of memory that occur in the recording are drawn`() {
    var recording = Recording.sawtooth()
    #expect(!recording.picture().contains("class=\"shared\""))
    recording.samples[3].shared = megabyte
    #expect(recording.picture().contains("class=\"shared\""))
    #expect(!recording.picture().contains("class=\"swapped\""))
  }

  @Test func `The picture of a day of samples has a limited size`() {
    let samples = (0..<86_400).map { (Double($0), Double($0 % 97)) }
    #expect(Recording.steps(samples).picture().utf8.count < 120_000)
  }
}
