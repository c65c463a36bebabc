import Checksum
import Linux
import Policy

@testable import Control
@testable import Hibernation
@testable import PolicyFile
@testable import Supervision

extension FuzzTarget {
  /// Reads the input as a file that a worker writes or that is in the state directory: variables,
  /// logs and their times, records of workers, names of images.
  static let files = FuzzTarget(
    read: { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      _ = EnvironmentFile.parse(text, file: "fuzz")
      readLog(bytes, text)
      readRecord(bytes)
      readRecord(Array(text.utf8) + Array("crc32=\(CRC32.ieee.text(of: text.utf8))\n".utf8))
      if let mark = ImageMark(text: text) { precondition(ImageMark(text: mark.text) == mark) }
      _ = ImageDirectory(text: text)
      readTrimRecord(bytes)
      readTrimRecord(withChecksum(bytes))
      _ = Signals.number(text)
      readImports(text)
    }, seeds: { inputs(from: fileSeeds) })
}

/// Reads the input as the record of an interrupted trim.
private func readTrimRecord(_ bytes: [UInt8]) {
  // Most inputs aren't records.
  guard let record = try? TrimRecord(parsing: bytes) else { return }
  precondition(record.stopped.allSatisfy { $0.pid > 1 })
  for thread in record.borrowed { precondition(thread.thread != nil && thread.tid > 0) }
}

/// Makes a record with a right checksum from any bytes.
private func withChecksum(_ bytes: [UInt8]) -> [UInt8] {
  var writer = ByteWriter()
  writer.append(TrimRecord.magic + bytes)
  writer.append(CRC32.castagnoli.checksum(of: writer.bytes))
  return writer.bytes
}

/// Reads the input as files of other supervisors that have importers here.
private func readImports(_ text: String) {
  let results = [
    PM2Import.convert(text: text, file: "ecosystem.config.js"),
    QuadletImport.convert(text: text, file: "a.container") { _ in true },
  ]
  for result in results { precondition(result.value != nil || !result.errors.isEmpty) }
}

private func readLog(_ bytes: [UInt8], _ text: String) {
  for line in LastLogLines.lastLines(3, of: bytes) {
    precondition(line.count <= 201 && !line.contains("\n"))
  }
  for line in text.split(separator: "\n") { _ = LogTimes.parse(line) }
  let times = LogTimeline(text: text)
  _ = (times.offset(since: 5), times.time(at: 5), times.isEmpty)
  var cutter = LogLineCutter()
  var filter = TerminalFilter()
  var shown: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 61) {
    let piece = Array(bytes[start..<min(start + 61, bytes.count)])
    _ = cutter.lines(in: piece)
    shown += filter.filter(piece)
  }
  _ = cutter.finish()
  shown += filter.finish()
  checkEscapes(of: shown)
  let safe = escaped(text)
  precondition(escaped(safe) == safe)
  _ = displayWidth(safe)
}

/// Checks that a terminal gets no control sequence but colours.
private func checkEscapes(of shown: [UInt8]) {
  for (index, byte) in shown.enumerated() where byte == 0x1B {
    let tail = shown[(index + 1)...]
    precondition(tail.first == UInt8(ascii: "["))
    let end = tail.dropFirst().first { !"0123456789;:".utf8.contains($0) }
    precondition(end == UInt8(ascii: "m"))
  }
}

private func readRecord(_ bytes: [UInt8]) {
  // A record that is refused is the right answer to most inputs.
  guard let record = try? WorkerRecord.decode(bytes) else { return }
  precondition((try? WorkerRecord.decode(Array(record.encoded.utf8))) == record)
}

private let fileSeeds = [
  "# a comment\nKEY=value\nexport A='1 2'\nB=\"x\\n\\\"y\"\nC=$D # end\nD=\"two\nlines\"\n",
  "1700000000 12\n1700000005 400\n1700000009 10\n",
  "a line\n\u{1B}[31mred\u{1B}[0m \u{1B}]0;title\u{7}\r\nüä😀\u{202E}\u{85}\n", "SIGUSR1", "RTMIN+3",
  "deadbeef-1-2-3",
  "module.exports = { apps: [{ name: 'a', script: \"b.js\", args: ['-p', 80], "
    + "env: { A: `x` } }] };\n",
  "[Container]\nImage=x\nEntrypoint=[\"/e\"]\nExec=-p 80\nHealthCmd=y\n[Service]\nRestart=always\n",
  "version=1\nname=a\npid=17\nstart=99\nsession=17\nboot=b\ncommand=sleep\ncommand=5\ndirectory=/\n"
    + "log=/tmp/a.log\nstate=background\ncgroup=/sys/fs/cgroup/a\nimportance=3\n",
]
