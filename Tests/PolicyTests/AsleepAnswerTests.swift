import Policy
import Testing

@Suite("Health checks while asleep, as text") struct AsleepAnswerTests {
  @Test func `A port, and a port with a path, are read as they are written`() throws {
    for (text, port, path) in [
      ("8080", 8080, nil), ("1", 1, nil), ("65535/", 65535, "/"),
      ("8081/healthz", 8081, "/healthz"), ("8081/a/b.c~%20", 8081, "/a/b.c~%20"),
    ] as [(String, UInt16, String?)] {
      let answer = try AsleepAnswer(text: text)
      #expect(answer == AsleepAnswer(port: port, path: path) && answer.text == text)
    }
  }

  @Test(arguments: [
    "", "0", "65536", "-1", "+80", "http", "/healthz", "80healthz", "80/a b", "80/a\nb", "80/a?b",
    "80/a#b",
    "80/ü", " 80", "80:/x", "99999999999999999999",
  ])
  func `Anything else is refused, and shown on one line`(text: String) {
    let error = #expect(throws: AsleepAnswerError.self) { try AsleepAnswer(text: text) }
    #expect(error?.description.contains("\n") == false)
  }
}
