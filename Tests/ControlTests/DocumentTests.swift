import Control
import TestSupport
import Testing

/// The documents are promises to authors of clients and scripts.
@Suite struct Documents {
  private func document(_ name: String) throws -> [Substring] {
    try SourceTree.text("docs/\(name)").split(separator: "\n")
  }

  @Test func `Each line of the transcript in the protocol's page is what this version sends`()
    throws
  {
    var pending: Set<UInt64> = []
    var count = 0
    for line in try document("control-protocol.md") {
      guard let mark = line.first, mark == "→" || mark == "←" else { continue }
      guard line.dropFirst(2).hasPrefix("{") else { continue }
      let bytes = Array(line.dropFirst(2).utf8)
      count += 1
      if mark == "→" {
        pending.insert(try #require(WireCodec.requestID(in: bytes)))
        if line.contains("dance") { continue }
        let request = try WireCodec.decode(ControlRequest.self, from: bytes)
        #expect(try WireCodec.json(for: request) == bytes)
      } else {
        let response = try WireCodec.decode(ControlResponse.self, from: bytes)
        #expect(try WireCodec.json(for: response) == bytes)
        #expect(pending.remove(response.id) != nil, "\(response.id) answers nothing")
      }
    }
    #expect(count == 12)
    #expect(pending.isEmpty)
  }

  @Test func `The protocol's page has every verb, and the page of exit codes has every code`()
    throws
  {
    let verbs = try document("control-protocol.md").filter { $0.hasPrefix("|") }
    for verb in ControlRequest.Verb.allCases {
      #expect(verbs.contains { $0.contains("`\(verb.rawValue)`") }, "\(verb)")
    }
    let codes = try document("exit-codes.md")
    for code in CommandExit.allCases {
      #expect(codes.contains { $0.hasPrefix("| \(code.rawValue) |") }, "\(code)")
    }
  }
}
