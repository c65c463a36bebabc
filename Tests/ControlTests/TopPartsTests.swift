import Control
import Linux
import Testing

@Suite("Keys of a terminal") struct KeyReaderTests {
  @Test(
    arguments: [
      ("\u{1B}[A", .up), ("\u{1B}OA", .up), ("\u{1B}[B", .down), ("\u{1B}[1;5B", .down),
      ("\u{1B}[5~", .pageUp), ("\u{1B}[6~", .pageDown), ("\u{1B}[H", .home), ("\u{1B}OH", .home),
      ("\u{1B}[1~", .home), ("\u{1B}[7~", .home), ("\u{1B}[F", .end), ("\u{1B}[4~", .end),
      ("\u{1B}[8~", .end), ("\r", .enter), ("\n", .enter), ("\u{7F}", .backspace),
      ("\u{8}", .backspace), ("\u{4}", .endOfInput), ("é", .character("é")),
    ] as [(String, TerminalKey)])
  func `Keys are recognised in the sequences of several terminals`(text: String, key: TerminalKey) {
    let bytes = Array(text.utf8)
    var whole = KeyReader()
    #expect(whole.keys(in: bytes) == [key] && !whole.isWaiting)
    // The result is the same when each byte arrives alone.
    var pieces = KeyReader()
    #expect(bytes.flatMap { pieces.keys(in: [$0]) } == [key] && !pieces.isWaiting)
  }

  @Test func `Escape alone is a key when nothing follows it, and before another key`() {
    var reader = KeyReader()
    #expect(reader.keys(in: [0x1B]).isEmpty && reader.isWaiting)
    #expect(reader.finish() == [.escape] && !reader.isWaiting)
    #expect(reader.keys(in: Array("\u{1B}q".utf8)) == [.escape, .character("q")])
    #expect(reader.keys(in: Array("\u{1B}\u{1B}[A".utf8)) == [.escape, .up])
  }

  @Test func `Unknown sequences, control characters and bytes that aren't UTF-8 are dropped`() {
    var reader = KeyReader()
    let bytes = Array("\u{1B}[15~a\u{1B}OPb\u{0}\tc".utf8) + [0xFF, 0xC3] + Array("d".utf8)
    #expect(reader.keys(in: bytes) == "abcd".map { .character($0) })
  }
}

@Suite("Processor time of workers") struct ProcessorUseTests {
  private static func group(_ seconds: Double, _ used: Double, pid: Int32 = 1) -> ProcessorReading {
    ProcessorReading(
      time: Int64(seconds * 1e9), pid: pid, used: .group(UInt64(used * 1e6)))
  }

  private static func processes(_ seconds: Double, _ used: [Int32: Double]) -> ProcessorReading {
    ProcessorReading(
      time: Int64(seconds * 1e9), pid: 1,
      used: .processes(
        Dictionary(
          uniqueKeysWithValues: used.map {
            (ProcessIdentity(pid: $0, startTime: 5), UInt64($1 * 1e9))
          })))
  }

  @Test func `A worker's share is what its cgroup used between two looks`() throws {
    var use = ProcessorUse()
    use.update(["a": Self.group(10, 3)])
    #expect(use.percent.isEmpty)
    use.update(["a": Self.group(12, 4), "b": Self.group(12, 1)])
    #expect(use.percent == ["a": 50])
    // Right after a sample, the difference is too small for a percentage.
    use.update(["a": Self.group(12.01, 4.01), "b": Self.group(12.01, 1)])
    #expect(use.percent == ["a": 50])
    use.update(["a": Self.group(13, 6)])
    #expect(use.percent == ["a": 200])
    use.update([:])
    #expect(use.percent.isEmpty)
  }

  @Test("Another run of a worker, or a counter that fell, has no share before its second look")
  func restarted() {
    var use = ProcessorUse()
    use.update(["a": Self.group(10, 3)])
    use.update(["a": Self.group(11, 9, pid: 2)])
    #expect(use.percent.isEmpty)
    use.update(["a": Self.group(12, 9.5, pid: 2)])
    #expect(use.percent == ["a": 50])
    use.update(["a": Self.group(13, 1, pid: 2)])
    #expect(use.percent.isEmpty)
  }

  @Test("Without a cgroup a new process counts in full, and one that has ended takes nothing away")
  func trees() {
    var use = ProcessorUse()
    use.update(["a": Self.processes(10, [1: 5, 2: 7])])
    use.update(["a": Self.processes(12, [1: 6, 3: 0.5])])
    #expect(use.percent == ["a": 75])
  }
}
