@testable import FootprintTrace

let megabyte: Int64 = 1 << 20

extension Recording {
  /// Makes a recording with a sample of the given megabytes at each moment, and with marks.
  static func steps(
    _ megabytes: [(at: Double, size: Double)], marks: [FootprintMark] = [], end: Double? = nil,
    name: String = "consume", state: String? = nil
  ) -> Recording {
    let header = RecordingHeader(
      subject: .worker, name: name, pid: 42, command: ["/usr/bin/consume", "--steps", "9"],
      state: state, every: 0.1, time: "2026-11-21T08:46:07.104Z", version: "0.1.0",
      host: .init(kernel: "6.18.0", cores: 2, memory: 4 << 30, page: 4096, swap: 0))
    return Recording(
      header: header,
      samples: megabytes.map {
        FootprintSample(at: $0.at, anonymous: Int64($0.size * Double(megabyte)))
      }, marks: marks, end: end.map { RecordingEnd(at: $0, reason: .time) })
  }

  /// Makes a recording whose footprint grows by 1 MB each second for 10 s until a warning, and
  /// again until the end at 20 s.
  static func sawtooth(name: String = "consume") -> Recording {
    steps(
      (0..<20).map { (Double($0), Double($0 % 10) + 2) },
      marks: [FootprintMark(at: 9.5, kind: .warning, text: "memory warning sent")], end: 20,
      name: name, state: "foreground")
  }

  /// The text of the file that a recorder would write.
  var file: String {
    let lines =
      [header.json] + samples.map(\.json) + marks.map(\.json) + (end.map { [$0.json] } ?? [])
    return lines.map { String(decoding: $0.line, as: UTF8.self) + "\n" }.joined()
  }
}

func read(_ text: String, pieces: Int = .max) throws(RecordingError) -> Recording {
  var reader = RecordingReader(file: "a.footprint")
  let bytes = Array(text.utf8)
  for start in stride(from: 0, to: bytes.count, by: min(pieces, max(1, bytes.count))) {
    try reader.feed(Array(bytes[start..<min(bytes.count, start + min(pieces, bytes.count))]))
  }
  return try reader.finish()
}
