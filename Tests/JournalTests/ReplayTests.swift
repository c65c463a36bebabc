import JSONLines
import Lifecycle
import TestSupport
import Testing

@testable import Journal

@Suite("A journal that is played again") struct ReplayTests {
  @Test(arguments: 1...Nightly.rounds(10, of: 40))
  func `A replayed journal gives the same engine after every event`(seed: Int) throws {
    let recording = try Recording(seed: UInt64(seed), segmentSize: seed % 3 == 0 ? 20_000 : .max)
    var player = JournalPlayer()
    var check = DeterminismCheck()
    var index = 0
    player.play(recording.journal) { step, engine in
      check.visit(step)
      guard case .event = step.kind else { return }
      defer { index += 1 }
      guard index < recording.engines.count else { return }
      #expect(engine.visible == recording.engines[index].visible)
      if index % 50 == 0 { #expect(engine.isSame(as: recording.engines[index])) }
    }
    #expect(index == recording.engines.count)
    #expect(player.problems.isEmpty, "\(player.problems)")
    #expect(check.differingEvents == 0, "\(check.differences)")
    #expect(check.runs == 1)
    #expect(check.segments == recording.segments.count)
  }

  @Test("A replayed journal gives the same engine when its first segments are missing")
  func laterSegment() throws {
    let recording = try Recording.inSegments(4)
    for first in 1..<recording.segments.count {
      var player = JournalPlayer()
      var check = DeterminismCheck()
      player.play(Array(recording.journal[first...])) { step, _ in check.visit(step) }
      #expect(player.problems.isEmpty)
      #expect(check.differingEvents == 0)
      #expect(player.engine.visible == recording.engines.last?.visible)
    }
  }

  @Test("A replay finds no difference if another version recorded the decisions in other words")
  func otherWords() throws {
    let recording = try Recording(seed: 11)
    var bytes: [UInt8] = []
    var directives = 0
    for line in recording.segments[0].split(separator: UInt8(ascii: "\n")) {
      guard let record = SealedLine.open(line), case .object(let members) = record,
        let decided = record["do"]
      else {
        bytes += line + [10]
        continue
      }
      directives += decided.elements?.count ?? 0
      var fields = FieldWriter()
      for member in members {
        fields.set(member.name, member.name == "do" ? Self.reworded(decided) : member.value)
      }
      bytes += SealedLine.seal(fields)
    }
    try #require(directives > 100)
    var player = JournalPlayer()
    var check = DeterminismCheck()
    let written = bytes
    player.play([JournalSegment(name: "older") { written }]) { step, _ in check.visit(step) }
    #expect(player.problems.isEmpty && check.events > 0)
    #expect(check.differingEvents == 0, "\(check.differences)")
  }

  /// Returns the record as a version with other sentences would have written it, with `graceOver`
  /// without its time.
  private static func reworded(_ json: JSON) -> JSON {
    switch json {
    case .array(let elements): .array(elements.map(reworded))
    case .object(let members):
      .object(
        members.map { member in
          switch member.name {
          case "why" where member.value.text != nil: JSON.Member("why", .string("it was so"))
          case "graceOver": JSON.Member("graceOver", .object([]))
          default: JSON.Member(member.name, reworded(member.value))
          }
        })
    default: json
    }
  }

  @Test func `A replay finds a record whose decisions differ from the engine's`() throws {
    let recording = try Recording(seed: 11)
    // This record lacks the engine's directives, and has a valid checksum.
    let lines = recording.segments[0].split(separator: UInt8(ascii: "\n"))
    var forged: [UInt8] = []
    var forgeries = 0
    for line in lines {
      guard forgeries == 0, let record = SealedLine.open(line), record["do"] != nil,
        case .object(let members) = record
      else {
        forged += line + [10]
        continue
      }
      var fields = FieldWriter()
      for member in members where member.name != "do" { fields.set(member.name, member.value) }
      forged += SealedLine.seal(fields)
      forgeries += 1
    }
    try #require(forgeries == 1)
    var player = JournalPlayer()
    var check = DeterminismCheck()
    let bytes = forged
    player.play([JournalSegment(name: "forged") { bytes }]) { step, _ in check.visit(step) }
    #expect(check.differingEvents == 1)
    #expect(check.differences.first?.recorded == nil)
  }
}
