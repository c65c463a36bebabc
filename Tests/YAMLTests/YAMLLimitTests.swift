import Glibc
import Testing

@testable import YAML

@Suite(.timeLimit(.minutes(5))) struct `Limits of YAML documents` {
  private static func error(of text: String) -> YAMLError? {
    do throws(YAMLError) {
      _ = try YAMLDocument(parsing: text)
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("&a [", "]"), ("- - ", "")])
  func `A hundred levels are read, and more are refused where they begin`(
    open: String, close: String
  ) throws {
    let perPiece = open == "- - " ? 2 : 1
    func nested(_ count: Int) -> String {
      String(repeating: open, count: count) + "x" + String(repeating: close, count: count)
    }
    #expect(try YAMLDocument(parsing: nested(100 / perPiece)).root != nil)
    // At 100,000 levels a recursion would need at least 10 MB of stack.
    for count in [101, 100_000] {
      guard case .depth(100, let mark) = Self.error(of: nested(count)) else {
        Issue.record("\(count) times \(open)")
        continue
      }
      #expect(mark.line == 1)
      #expect(mark.column > 100)
    }
  }

  /// Returns a text that stands for ten to the power of `depth` texts.
  private static func bomb(depth: Int) -> String {
    (0..<depth).map { level in
      let item = level == 0 ? "x" : "*a\(level - 1)"
      return "- &a\(level) [\(Array(repeating: item, count: 10).joined(separator: ", "))]\n"
    }.joined()
  }

  @Test func `Aliases count as what they stand for, each time`() throws {
    #expect(try YAMLDocument(parsing: Self.bomb(depth: 6)).root?.sequence?.count == 6)
    guard case .aliases(let limit, let mark) = Self.error(of: Self.bomb(depth: 12)) else {
      Issue.record("not refused")
      return
    }
    #expect(limit == 10 << 20)
    #expect(mark.line == 7)
    // One long text is used many times, and as a key.
    let long = "a: &a " + String(repeating: "x", count: 100_000) + "\n"
    #expect(Self.error(of: long + "b: [" + String(repeating: "*a,", count: 100) + "]\n") == nil)
    #expect(Self.error(of: long + "b: [" + String(repeating: "*a,", count: 110) + "]\n") != nil)
    let keys = (0..<110).map { _ in "? [*a]\n: x\n" }.joined()
    #expect(Self.error(of: long + keys) != nil)
  }

  @Test func `Many uses of a small alias are accepted`() throws {
    let uses = String(repeating: "- *a\n", count: 100_000)
    #expect(try YAMLDocument(parsing: "- &a { b: c }\n" + uses).root?.sequence?.count == 100_001)
    // In quotes and comments a `*` isn't an alias.
    let signs = (0..<1_000).map { "# &a\($0) *a\($0) \n- '&b *b'\n" }.joined()
    #expect(try YAMLDocument(parsing: signs).root?.sequence?.count == 1_000)
  }

  @Test func `A megabyte of tag directives is refused within seconds`() throws {
    for (start, end) in [("", "\n"), ("\u{FEFF}", "\r\n"), ("\n", "\u{2028}")] {
      let text = start + (0..<60_000).map { "%TAG !a\($0)! b" }.joined(separator: end) + end
      var used = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
      let before = used.tv_sec
      #expect(Self.error(of: text) == .tagDirectives(limit: 100))
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
      #expect(used.tv_sec - before <= 3)
    }
    let few = (0..<100).map { "%TAG !a\($0)! b\n" }.joined()
    #expect(try YAMLDocument(parsing: few + "--- !a7!x 1\n").root?.tag == "bx")
    // Within a line `%TAG` isn't a directive.
    let inLines = String(repeating: "- a%TAG\n", count: 200)
    #expect(try YAMLDocument(parsing: inLines).root?.sequence?.count == 200)
  }

  @Test(arguments: [
    "a,", "[],", "{},", "a: b, ", "? ", "- a\n", "k: v\n", "? a\n", "a\n", " a\n\n", "#\n", "\"",
    "'",
    "\\n", "!", "&a ", "*a", "--- a\n", "...\n", ": ", "\t", " ", "|\n", "%YAML 1.1\n", "!<%41",
    "[[[[[[[[[[a]]]]]]]]]],",
  ])
  func `64 KiB of any text are read or refused in time`(piece: String) {
    for prefix in ["", "[", "k: |\n ", String(repeating: "[", count: 90)] {
      let text = prefix + String(repeating: piece, count: (64 << 10) / piece.utf8.count)
      // The suite's time limit is the expectation.
      do throws(YAMLError) {
        #expect(try YAMLDocument(parsing: text).duplicates.count <= 100)
      } catch {
        #expect(error != .outOfMemory)
      }
    }
  }
}
