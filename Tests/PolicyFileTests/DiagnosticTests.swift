import Testing

@testable import PolicyFile

@Suite struct `Diagnostics of policies` {
  @Test func `An unknown key shows its line, a caret and the nearest spelling`() {
    #expect(
      policy("name: web\nhibernate:\n  max_footprnt: 16MB\n").rendered == """
        p.yaml:3:3: error: unknown key `max_footprnt` in `hibernate`
          max_footprnt: 16MB
          ^
        help: did you mean `max_footprint`?
        """)
  }

  @Test func `An error about thresholds out of order names both levels`() {
    #expect(
      policy("pressure:\n  critical: { available_below: 12% }\n").rendered == """
        p.yaml:2:32: error: thresholds out of order: `critical` begins at 12% available, before \
        `urgent` at 10%
          critical: { available_below: 12% }
                                       ^
        help: warning, urgent and critical need decreasing values
        """)
  }

  @Test func `A syntax error is shown with its line, a caret and a suggestion`() {
    #expect(
      policy("memory:\n\tbudget: host\n").rendered == """
        p.yaml:2:1: error: syntax: while scanning for the next token, found character that cannot \
        start any token
        \tbudget: host
        ^
        help: indent with blanks: YAML allows no tabs there
        """)
  }

  @Test
  func `An error about an unclosed mapping is shown at the text's end and says where it begins`() {
    #expect(
      policy("name: x\nmemory: { budget: host\n").rendered == """
        p.yaml:2:23: error: syntax: while parsing a flow mapping, did not find expected ',' or '}'
        memory: { budget: host
                              ^
        help: it begins in line 2, column 9
        """)
  }

  @Test
  func `A duplicate key is reported at its second position, and later errors are still reported`() {
    #expect(
      policy("name: a\nmode: shadow\n\"mode\": enforc\nnamed: b\n").rendered == """
        p.yaml:3:1: error: `mode` is given twice; the first is in line 2
        "mode": enforc
        ^
        p.yaml:3:9: error: `mode` must be `enforce` or `shadow`, not `enforc`
        "mode": enforc
                ^
        help: did you mean `enforce`?
        p.yaml:4:1: error: unknown key `named`
        named: b
        ^
        help: did you mean `name`?
        """)
  }

  @Test func `Each repetition of a key is reported, also in sections that aren't read`() {
    let result = policy(
      """
      mode: shadow
      'mode': shadow
      mode: shadow
      misspelt: { a: 1, a: 2 }
      """)
    #expect(
      result.errors.filter { $0.message.contains("twice") }.map(\.rendered) == [
        """
        p.yaml:2:1: error: `mode` is given twice; the first is in line 1
        'mode': shadow
        ^
        """,
        """
        p.yaml:3:1: error: `mode` is given twice; the first is in line 1
        mode: shadow
        ^
        """,
        """
        p.yaml:4:19: error: `a` is given twice; the first is in line 4
        misspelt: { a: 1, a: 2 }
                          ^
        """,
      ])
  }

  @Test func `Several errors are reported in one run, in the order of the text`() {
    let result = policy(
      """
      mode: on
      memory: { budget: 0B }
      foreground: { max: 0 }
      background: { suspend_after: 10 sec }
      hibernate: { compression: { level: 20 } }
      terminate: { order: [regrets] }
      ladder: { warning: [hibernat] }
      """)
    #expect(result.value == nil)
    #expect(result.errors.compactMap(\.position?.line) == [1, 2, 3, 4, 5, 6, 7])
    #expect(result.errors[3].suggestion == "write `10s`")
    #expect(result.errors[5].suggestion == "did you mean `regret`?")
  }

  @Test func `A caret is under its error also after tabs and in long lines`() {
    let long = "name: x # " + String(repeating: "y", count: 300) + "\n"
    let inLong = policy("memory: {\(String(repeating: " ", count: 300))budgt: host}\n" + long)
    let excerpt = inLong.diagnostics.first?.excerpt
    #expect(excerpt?.line.hasPrefix("…") == true)
    let caret = excerpt?.caretLine.count ?? 0
    #expect(excerpt.map { Array($0.line)[caret - 1] } == "b")
    let tabbed = policy("memory: {\tbudgt: host }").diagnostics.first?.excerpt
    #expect(tabbed?.caretLine == "         \t^")
  }

  @Test func `Control characters of a policy file don't reach the terminal`() {
    let result = policy("name: \"\u{1B}[31m\"\n\u{202E}mode: x\n")
    #expect(!result.rendered.unicodeScalars.contains("\u{1B}"))
    #expect(!result.rendered.unicodeScalars.contains("\u{202E}"))
    #expect(result.value == nil)
  }
}
