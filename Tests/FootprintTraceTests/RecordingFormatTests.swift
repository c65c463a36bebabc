import JSONLines
import Testing

@testable import FootprintTrace

@Suite struct FormatTests {
  static let whole: Recording = {
    var recording = Recording.steps(
      [(0, 1), (0.1, 2.5), (0.2, 0)],
      marks: [
        FootprintMark(at: 0.05, kind: .warning, text: "näh\u{1B}[2J\n\"→\""),
        FootprintMark(
          at: 0.15, kind: .state, text: "asked for", from: "suspended", to: "hibernated",
          seconds: 0.061, freed: 12345),
      ], state: "foreground")
    recording.samples[1] = FootprintSample(
      at: 0.1, anonymous: 1, copied: 2, shared: 3, swapped: 4, clean: 5, processes: 6)
    recording.end = RecordingEnd(at: 0.25, reason: .exited, code: nil, signal: 9)
    return recording
  }()

  @Test(arguments: [1, 7, Int.max])
  func `A recording is read again unchanged, in pieces of any size`(pieces: Int) throws {
    let again = try read(Self.whole.file, pieces: pieces)
    #expect(again == Self.whole)
  }

  @Test func `Each line of a recording is plain JSON with the footprint`() {
    let line = String(decoding: Self.whole.samples[1].json.line, as: UTF8.self)
    #expect(
      line == #"{"t":0.1,"footprint":10,"anonymous":1,"copied":2,"shared":3,"swapped":4,"#
        + #""clean":5,"processes":6}"#)
  }

  @Test func `An incomplete last line is left out, and the others are read, wherever the cut is`()
    throws
  {
    let bytes = Array(Self.whole.file.utf8)
    let second = try #require(bytes.dropFirst().firstIndex(of: UInt8(ascii: "\n"))) + 120
    for cut in second..<bytes.count {
      let text = String(decoding: bytes[..<cut], as: UTF8.self)
      let recording = try read(text)
      #expect(!recording.samples.isEmpty && recording.samples.count <= 3)
      #expect(Array(Self.whole.samples.prefix(recording.samples.count)) == recording.samples)
      let isWholeLine = bytes[cut - 1] == UInt8(ascii: "\n") || bytes[cut] == UInt8(ascii: "\n")
      #expect(recording.lostItsTail != isWholeLine)
    }
  }

  @Test(arguments: [
    (2, "nonsense"), (2, "[1]"), (2, #"{"t":-1,"footprint":1}"#), (2, #"{"footprint":1}"#),
    (2, #"{"t":"x","footprint":1}"#), (2, #"{"t":1e300,"footprint":1}"#),
    (2, #"{"t":1,"footprint":-5}"#), (2, #"{"t":1,"footprint":1.5}"#),
    (2, #"{"t":1,"footprint":9223372036854775807}"#),
    (2, #"{"t":1,"anonymous":"many"}"#), (2, #"{"t":1,"footprint":5,"copied":7}"#),
    (3, #"{"t":1,"footprint":1}"# + "\n" + #"{"t":0.5,"footprint":1}"#),
  ])
  func `A bad line is an error with the line's number`(line: Int, text: String) throws {
    let header = String(decoding: Self.whole.header.json.line, as: UTF8.self)
    let error = #expect(throws: RecordingError.self) {
      try read(header + "\n" + text + "\n" + #"{"t":2,"footprint":1}"# + "\n")
    }
    #expect(
      error?.description.hasPrefix("a.footprint:\(line): ") == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    "", "\n\n", "dormouse footprint,1\nlength,5\n", "\u{7F}ELF", "{}\n",
    #"{"recording":"x","format":1}"#,
    #"{"recording":"dormouse footprint","format":2,"every":1}"# + "\n",
    #"{"recording":"dormouse footprint","format":1}"# + "\n",
    #"{"recording":"dormouse footprint","format":1,"every":0.1}"# + "\n",
  ])
  func `A file that isn't a footprint recording is refused`(text: String) {
    #expect(throws: RecordingError.self) { try read(text) }
  }

  @Test func `Recordings with fewer fields, and of newer versions with more fields, are read`()
    throws
  {
    let recording = try read(
      """
      {"recording":"dormouse footprint","format":1,"every":1,"weather":"fine"}
      {"t":0,"footprint":4096,"colour":3}

      {"t":1,"mark":"eclipse","text":"dark"}\r
      {"t":1,"something":"else"}
      {"t":2,"footprint":8192}
      """)
    #expect(recording.samples.map(\.footprint) == [4096, 8192])
    #expect(recording.samples.map(\.anonymous) == [4096, 8192])
    #expect(recording.marks.map(\.kind) == [.note] && recording.marks[0].text == "dark")
    #expect(recording.end == nil && !recording.lostItsTail)
  }

  @Test func `A line without an end doesn't fill the memory`() throws {
    var reader = RecordingReader(file: "a.footprint")
    let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
    #expect(throws: RecordingError.self) { for _ in 0..<6 { try reader.feed(piece) } }
  }
}
