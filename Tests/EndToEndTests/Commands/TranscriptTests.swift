import JSONLines
import Linux
import TestSupport
import Testing

@Suite("The worker protocol's transcript") struct TranscriptTests {
  /// The page's lines that begin with an arrow.
  static func documented() throws -> [String] {
    let text = try readText("\(TestMachine.root)/docs/worker-protocol.md")
    return text.split(separator: "\n").map(String.init).filter {
      $0.hasPrefix("→ ") || $0.hasPrefix("← ")
    }
  }

  @Test("The worker protocol's documented transcript equals a real one except for the numbers")
  func recorded() throws {
    let scratch = try Scratch()
    let log = "\(scratch.path)/talk"
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h, shed_deadline: 60s }
        hibernate: { after: never }
      workers:
        journal:
          command: [\(TestMachine.python), \(TestMachine.fixture("transcript.py")), \(log)]
          readiness: { notify: true }
      """)
    try daemon.wait("journal", toBe: "foreground")
    #expect(try eventually { try readText(log).contains("didEnterForeground") })
    for verb in ["warn", "background", "suspend", "wake"] { try daemon.done(verb, "journal") }
    #expect(try eventually { try readText(log).contains("didResume") })
    try daemon.done("stop", "journal")
    let text = try readText(log).split(separator: "\n").map { Self.withoutNumbers(String($0)) }
    #expect(text == (try Self.documented().map(Self.withoutNumbers)))
  }

  private static func withoutNumbers(_ line: String) -> String {
    func cleared(_ json: JSON) -> JSON {
      switch json {
      case .int, .unsigned, .double: .int(0)
      case .object(let members): .object(members.map { JSON.Member($0.name, cleared($0.value)) })
      default: json
      }
    }
    let text = Array(line.dropFirst(2).utf8)
    guard let json = JSON(text) else { return line }
    return String(line.prefix(2)) + String(decoding: cleared(json).line, as: UTF8.self)
  }
}
