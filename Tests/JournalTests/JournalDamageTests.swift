import Lifecycle
import TestSupport
import Testing

@testable import Journal

@Suite("A damaged journal") struct DamageTests {
  private func play(_ segments: [[UInt8]]) -> (player: JournalPlayer, events: Int, gaps: Int) {
    var player = JournalPlayer()
    var events = 0
    var gaps = 0
    let journal = segments.enumerated().map { place, bytes in
      JournalSegment(name: "segment-\(place)") { bytes }
    }
    player.play(journal) { step, _ in
      switch step.kind {
      case .event: events += 1
      case .began(_, .afterGap): gaps += 1
      default: break
      }
    }
    return (player, events, gaps)
  }

  @Test("A journal torn at any byte loses its last record and nothing else, and says so")
  func tornTail() throws {
    let bytes = try Recording(seed: 3).segments[0]
    let lines = bytes.split(separator: UInt8(ascii: "\n"))
    var start = 0
    for (place, line) in lines.enumerated().prefix(20) {
      let end = start + line.count + 1
      let whole = play([Array(bytes[..<start])])
      for cut in [start + 1, start + line.count / 2, end - 2, end - 1] {
        let torn = play([Array(bytes[..<cut])])
        guard case .damage(let damage)? = torn.player.problems.first else {
          Issue.record("line \(place + 1) cut at \(cut): nothing is said")
          continue
        }
        #expect(damage.isTornTail && damage.offset == start && torn.player.problems.count == 1)
        #expect(torn.events == whole.events)
        #expect(torn.player.engine.visible == whole.player.engine.visible)
      }
      start = end
    }
  }

  @Test("Damage is reported by byte and line, and the replay continues with the next segment")
  func corruptMiddle() throws {
    let recording = try Recording.inSegments(3)
    var segments = recording.segments
    let lines = segments[1].split(separator: UInt8(ascii: "\n"))
    let offset = lines[..<4].reduce(0) { $0 + $1.count + 1 }
    segments[1][offset + 10] ^= 1
    let (player, _, gaps) = play(segments)
    guard case .damage(let damage)? = player.problems.first else {
      throw JournalMismatch("nothing is said")
    }
    #expect(!damage.isTornTail && damage.offset == offset && damage.line == 5)
    #expect(damage.segment == "segment-1")
    #expect(gaps == 1)
    #expect(player.problems.count == 1)
    #expect(player.engine.visible == recording.engines.last?.visible)
  }

  @Test(
    "A journal with changed bytes is never replayed without a reported problem",
    arguments: 1...Nightly.rounds(10, of: 30))
  func noise(seed: Int) throws {
    var bytes = Self.sample
    var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    for _ in 0..<3 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      bytes[Int(state % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: state >> 20)
    }
    let (player, _, _) = play([bytes])
    if bytes != Self.sample { #expect(!player.problems.isEmpty) }
  }

  private static let sample: [UInt8] = (try? Recording(seed: 9).segments[0]) ?? []

  @Test func `A journal of a later version is refused with a sentence that says why`() throws {
    var fields = FieldWriter()
    fields.set("journal", "dormouse")
    fields.set("format", 2)
    fields.set("t", 1)
    let (player, events, _) = play([SealedLine.seal(fields)])
    #expect(events == 0)
    #expect("\(player.problems)".contains("it has format 2, and this version reads 1"))
  }
}
