import Foundation
import Testing

@Suite("The tidiness of the sources") struct TidyTests {
  private static func file(_ text: String, _ path: String = "Sources/Some/File.swift") -> SourceFile
  {
    SourceFile(path: path, text: text)
  }

  @Test func `The number of exceptions in each place equals the number in ratchet.txt`() throws {
    let files = Repository.files
    #expect(files.count > 900)
    let findings =
      files.flatMap { file in TidyRules.all.flatMap { $0(file) } }
      + TidyRules.repeatedNames(files)
    let url = Repository.root.appending(path: Ratchet.path)
    let ratchet = try Ratchet(String(contentsOf: url, encoding: .utf8))
    // `lower`: what scripts/tidy does; `write`: also raises, for a merge of branches that each
    // changed it.
    if let order = ProcessInfo.processInfo.environment["DORMOUSE_TIDY"] {
      try ratchet.text(for: findings, raises: order == "write")
        .write(to: url, atomically: true, encoding: .utf8)
      return
    }
    let complaints = ratchet.complaints(about: findings)
    #expect(complaints.isEmpty, "\(complaints.joined(separator: "\n"))")
  }

  @Test("The ratchet complains about a number that is exceeded and about one that is too high")
  func bothWays() throws {
    let ratchet = try Ratchet("# comment\ntry? Sources/Some 2\nlong-file a.swift 310\n")
    let two = (1...2).map { Finding(rule: "try?", area: "Sources/Some", detail: "\($0)") }
    let long = Finding(rule: "long-file", area: "a.swift", amount: 310, detail: "a")
    #expect(ratchet.complaints(about: two + [long]).isEmpty)
    let third = Finding(rule: "try?", area: "Sources/Some", detail: "the third")
    let more = ratchet.complaints(about: two + [third, long])
    #expect(more.count == 1 && more[0].contains("rose from 2 to 3"))
    #expect(more[0].contains("the third") && more[0].contains("say in a comment"))
    let fewer = ratchet.complaints(about: [two[0]])
    #expect(fewer.count == 2)
    #expect(fewer[0].contains("fell from 310 to 0") && fewer[0].contains("remove the line"))
    #expect(fewer[1].contains("write `try? Sources/Some 1`"))
    #expect(ratchet.complaints(about: []).count == 2)

    #expect(
      ratchet.text(for: [two[0], third, third], raises: false).hasSuffix("try? Sources/Some 2\n"))
    #expect(
      ratchet.text(for: [third, third, third], raises: true).hasSuffix("try? Sources/Some 3\n"))
    #expect(ratchet.text(for: [], raises: false) == Ratchet.heading)
    #expect(throws: Ratchet.BadLine.self) { try Ratchet("try? Sources/Some\n") }
    #expect(throws: Ratchet.BadLine.self) { try Ratchet("try? a 1\ntry? a 2\n") }
    #expect(throws: Ratchet.BadLine.self) { try Ratchet("try? a 0\n") }
  }

  @Test func `A phrase that messages avoid counts in a string, and not in a comment`() {
    let text = """
      let why = "`start` was asked for"
      // `start` was asked for
      log("ready")  // as was asked for
      """
    #expect(PhraseRule.messages(Self.file(text)).count == 1)
    #expect(PhraseRule.messages(Self.file(text, "Tests/Some/File.swift")).isEmpty)
  }

  @Test("A `try?` counts if neither its line nor the two lines before it have a comment")
  func unreasoned() {
    let text = """
      _ = try? one()
      _ = try? two()  // it is only tidying up
      print()
      print()
      // Nothing depends on it.
      let x = foo(
        try? three())
      print()
      print("x")  // try? in a comment
      let entry: Entry? = nil
      """
    let findings = TidyRules.unreasonedTry(Self.file(text))
    #expect(findings.map(\.detail) == ["Sources/Some/File.swift:1: _ = try? one()"])
    #expect(findings.first?.area == "Sources/Some")
    #expect(TidyRules.unreasonedTry(Self.file(text, "Tests/A/B.swift")).isEmpty)
  }

  @Test(
    "Calls of the C library count outside of the module Linux, and members and declarations don't")
  func libc() {
    let text = """
      import Glibc
      let a = Glibc.open(path, O_RDONLY)
      func read(_ x: Int) {}
      daemon.kill(pid)
      if kill(pid, 0) == 0 || getpid() == 1 {}
      var status = stat()
      try write(bytes)
      read(3)
      print("close it, or unlink(2) does")  // unlink(path)
      reopen(x)
      case open(String)
      """
    let details = TidyRules.libcCalls(Self.file(text)).map(\.detail)
    #expect(
      details == ["2: open", "5: kill"].map { "Sources/Some/File.swift:\($0)" })
    #expect(TidyRules.libcCalls(Self.file(text, "Sources/Linux/A.swift")).isEmpty)
    #expect(TidyRules.libcCalls(Self.file("kill(1)")).isEmpty)
  }

  @Test("Files of more than 300 lines and functions of more than 60 lines count with their length")
  func lengths() {
    #expect(TidyRules.longFile(Self.file(String(repeating: "x\n", count: 300))).isEmpty)
    let long = TidyRules.longFile(Self.file(String(repeating: "x\n", count: 301)))
    #expect(long.map(\.amount) == [301] && long.map(\.area) == ["Sources/Some/File.swift"])

    let body = String(repeating: "    work()\n\n", count: 30)
    let text =
      "struct A {\n  public static func long(\n    _ x: Int\n  ) throws -> Int {\n\(body)  }\n\n"
      + "  func short() {\n    work()\n  }\n  func one() { work() }\n"
      + "  init?(_ x: Int) {\n\(body)  }\n}\n"
      + "@Test func `a sentence (of words)`() {\n  work()\n}\n"
      + "protocol P {\n  func without(_ x: Int)\n  func another()\n}\n"
    let functions = TidyRules.functions(Self.file(text).lines)
    #expect(functions.map(\.name) == ["long", "short", "init", "a_sentence_(of_words)"])
    #expect(functions.map(\.length) == [64, 3, 62, 3])
    let findings = TidyRules.longFunctions(Self.file(text))
    #expect(findings.map(\.area) == ["long", "init"].map { "Sources/Some/File.swift#\($0)" })
  }

  @Test func `Words that plain English avoids count as whole words, not as parts of names`() {
    let text = "Who is told? Nobody, said the nobodyElse of who_knows, retold: whoever."
    let details = TidyRules.vocabulary(Self.file(text, "docs/a.md")).map(\.detail)
    #expect(details == ["who", "told", "nobody", "whoever"].map { "docs/a.md:1: \($0)" })
    let phrase = TidyRules.vocabulary(Self.file("It sleeps for good, as everywhere.", "docs/a.md"))
    #expect(phrase.map(\.detail) == ["docs/a.md:1:  for good"])
  }

  @Test func `A function that is named like a question counts unless it returns a Boolean`() {
    let text = """
      func isReady() -> Bool { true }
      func hasEnded() {}
      func wasLeft(
        _ a: Int, by b: (Int) -> Bool
      ) throws -> Bool {
      func areTaken(
        _ a: (Int) -> Bool
      ) {
      func isolated() {}
      func hasLaunched()
      func issue() -> Int
      func isLong(_ a: Int)
        -> Bool
      """
    let details = NameRules.booleans(Self.file(text)).map(\.detail)
    #expect(
      details
        == ["2: hasEnded", "6: areTaken", "10: hasLaunched"].map {
          "Sources/Some/File.swift:\($0) returns no Boolean"
        })
  }

  @Test("A word of many meanings counts as a part of an identifier, not in comments and strings")
  func vagueNames() {
    let text = """
      let nextLook = takeAll(places, "take a look")  // take
      overlook(restless, why: crewMates)
      func `A look at most places`() { "`" + take }
      """
    let details = NameRules.vagueNames(Self.file(text)).map(\.detail)
    #expect(
      details
        == ["1: look", "1: take", "2: why", "2: crew", "2: mates", "3: take"].map {
          "Sources/Some/File.swift:\($0)"
        })
  }

  @Test func `A comment that leans on its neighbour counts, and so does a line of 101 columns`() {
    let text = """
      /// Of its image.
      let a = 1  // The same, in bytes.
      // It is read once.
      // Of all files.
      let b = "https://example.org/Of"
      """
    #expect(
      CommentRules.beginning(Self.file(text)).map(\.detail) == [
        "Sources/Some/File.swift:1: a comment begins with \"Of \"",
        "Sources/Some/File.swift:2: a comment begins with \"The same\"",
      ])
    let lines = [100, 101].map { String(repeating: "é", count: $0) }.joined(separator: "\n")
    #expect(
      CommentRules.columns(Self.file(lines)).map(\.detail) == [
        "Sources/Some/File.swift:2: 101 columns, more than 100"
      ])
  }

  @Test func `A file name that occurs twice counts`() {
    let files = ["Sources/A/One.swift", "Tests/B/One.swift", "Sources/A/Two.swift", "a/One.md"]
      .map { Self.file("", $0) }
    let findings = TidyRules.repeatedNames(files)
    #expect(findings.map(\.area) == ["One.swift"] && findings.map(\.amount) == [2])
  }

  @Test("The places in ratchet.txt are modules, folders, and files of the repository's root")
  func places() {
    let expected = [
      "Sources/Linux/A/B.swift": "Sources/Linux", "docs/a/b.md": "docs", "README.md": "README.md",
      "Examples/consume/x.md": "Examples/consume", "Tests/permitted-skips.txt": "Tests",
    ]
    for (path, area) in expected { #expect(Self.file("", path).area == area) }
  }

  @Test(
    "A skipped test fails a CI run unless its reason is permitted",
    arguments: [
      ("➜ Test \"a “b” (c)\" skipped: \"the moon is full\"", false),
      ("➜ Test noReason() skipped.", false),
      ("➜ Suite \"Of the moon\" skipped: \"the moon is full\"", false),
      ("Not tested here: the moon is full", false),
      ("chaos: not run: there is no C compiler", false),
      ("➜ Test \"fish offers names\" skipped: \"fish isn't installed\"", true),
      ("Not tested here: java is not installed", true),
      ("✔ Test \"what is skipped: nothing\" passed after 1.0 seconds.", true),
    ])
  func skips(line: String, isPermitted: Bool) throws {
    let log = FileManager.default.temporaryDirectory
      .appending(path: "dormouse-skips-\(UUID().uuidString)")
    try "started\n\(line)\nended\n".write(to: log, atomically: false, encoding: .utf8)
    defer { unlink(log.path()) }
    let process = Process()
    process.executableURL = Repository.root.appending(path: "scripts/check-skips")
    process.arguments = [log.path()]
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["DORMOUSE_MACHINE": "ci"]) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect((process.terminationStatus == 0) == isPermitted, "\(said)")
  }
}
