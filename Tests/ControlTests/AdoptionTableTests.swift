import Control
import Testing

@Suite struct `The output of a dry run of rules` {
  private static func finding(
    _ name: String, _ code: String, _ text: String, footprint: Int64? = 40 << 20,
    processes: Int = 1
  ) -> AdoptionFinding {
    AdoptionFinding(
      rule: "ts", mode: "shadow", worker: name, pid: 7, footprint: footprint,
      processes: processes,
      command: ["/usr/bin/node", "/usr/lib/tsserver.js", "--stdio"], result: CodedText(code, text))
  }

  @Test func `Each process has a line, and those inside others are counted`() {
    let report = AdoptionPreviewReport(
      rules: 2,
      findings: [
        Self.finding("ts-1", "adopted", "adopted"),
        Self.finding("ts-2", "would_adopt", "would be adopted", processes: 3),
        Self.finding("ts-3", "contained", "belongs to pid 2, which matches, too"),
        Self.finding("ts-4", "refused", "not adopted: it is stopped", footprint: nil),
      ])
    #expect(
      renderAdoptionPreview(report) == """
        WORKER  MODE    FOOTPRINT  COMMAND           RESULT
        ts-1    shadow    40.0 MB  node tsserver.js  adopted
        ts-2    shadow    40.0 MB  node tsserver.js  would be adopted (3 processes)
        ts-4    shadow          -  node tsserver.js  not adopted: it is stopped
        2 rules: 2 workers, footprint 80.0 MB; matching processes inside them: 1

        """)
  }

  @Test func `A configuration without rules, and rules without a match, have a sentence`() {
    #expect(
      renderAdoptionPreview(AdoptionPreviewReport(rules: 0, findings: []))
        == "the configuration has no rules (`adopt:` in dormouse.yaml)\n")
    #expect(
      renderAdoptionPreview(AdoptionPreviewReport(rules: 1, findings: []))
        == "1 rule: 0 workers, footprint 0 B\n")
  }

  @Test func `A hostile command neither moves the cursor nor breaks the table`() {
    var finding = Self.finding("ts-1", "adopted", "adopted")
    finding.command = ["a\u{1B}[2J\nb"]
    let text = renderAdoptionPreview(AdoptionPreviewReport(rules: 1, findings: [finding]))
    #expect(!text.contains("\u{1B}") && text.split(separator: "\n").count == 3)
  }
}
