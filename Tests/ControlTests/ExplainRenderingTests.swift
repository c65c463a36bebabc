import Control
import Testing

@Suite struct `Rendering of explanations` {
  private let explanation = ExplanationReport(
    worker: "notes", state: "suspended", secondsInState: 12,
    because: CodedText("grace_over", "idle in the background for 10 s"),
    key: "background.suspend_after",
    next: "hibernated",
    obstacles: [
      .init(
        text: "its footprint, 21.3 MB, is over hibernate.max_footprint, 16 MB",
        key: "hibernate.max_footprint", measured: 22_334_668, limit: 16_777_216),
      .init(text: "the last attempt failed: no\u{1B} space", clearsInSeconds: 18),
    ],
    moves: [
      .init(to: "background", text: "its heartbeat", afterSeconds: 40, key: "background.heartbeat"),
      .init(to: "background", text: "`dormouse wake notes`"),
    ])

  @Test func `Output of explain is plain sentences, with the key where the text doesn't name it`() {
    #expect(
      renderExplanation(explanation) == """
        notes: suspended for 12 s: idle in the background for 10 s [background.suspend_after]
        Not hibernated yet:
          - its footprint, 21.3 MB, is over hibernate.max_footprint, 16 MB
          - the last attempt failed: no\\u{1b} space
        What changes its state:
          - background in 40 s: its heartbeat [background.heartbeat]
          - background: `dormouse wake notes`

        """)
  }

  @Test func `Output of explain says so if nothing prevents the next state`() {
    var free = explanation
    free.obstacles = []
    #expect(renderExplanation(free).contains("Next state: hibernated; nothing prevents it"))
  }

  @Test func `Output of explain ends with a line to paste and where it belongs`() {
    var report = explanation
    var remedy = RemedyReport(
      text: "a worker of its size is hibernated",
      settings: [.init(key: "hibernate.max_footprint", value: "32MB")],
      command: "dormouse hibernate notes")
    remedy.line = "policy: { hibernate: { max_footprint: 32MB } }"
    remedy.place = "in /etc/dormouse/dormouse.yaml, under `notes:` of `workers:` (line 4)"
    report.remedy = remedy
    #expect(
      renderExplanation(report).hasSuffix(
        """
          - background: `dormouse wake notes`
        To let it sleep, in /etc/dormouse/dormouse.yaml, under `notes:` of `workers:` (line 4):
            policy: { hibernate: { max_footprint: 32MB } }
        Then a worker of its size is hibernated. Once, without it: `dormouse hibernate notes`.

        """))
    report.remedy = RemedyReport(text: "decisions are applied", command: "dormouse enforce notes")
    #expect(
      renderExplanation(report).hasSuffix(
        "To let it sleep: `dormouse enforce notes`: decisions are applied\n"))
  }

  @Test func `Output of explain shows early wakes and their effect on the band`() {
    var early = explanation
    early.earlyWake = EarlyWakeReport(
      text: "needed again too soon once, the last time 40 s ago: band +10", count: 1,
      lastSecondsAgo: 40, bandBonus: 10)
    #expect(
      renderExplanation(early).contains("\nEarly wakes: needed again too soon once, the last time"))
  }

  @Test func `Lines of explain are broken at the terminal's width`() {
    let lines = renderExplanation(explanation, width: 50).split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 50 }, "\(lines)")
  }

  private var ranking: RankingReport {
    let regret = RankingReport.Regret(
      millisecondsPerMegabyte: 2.1, chance: 0.25, meanIntervalSeconds: 60, costSeconds: 0.34,
      isCostKnown: false)
    let entry = RankingReport.Entry(
      worker: "notes", state: "suspended", band: 12, bandOfState: 0, bandOfImportance: 5,
      bandBonus: 7, isDemoted: false, footprint: 40 << 20, secondsSinceUse: 125,
      launchSeconds: 0.34, regret: regret, before: CodedText("band", "lower band"),
      fromPressure: "urgent",
      obstacles: [.init(text: "it is in shadow mode", key: "mode")])
    return RankingReport(
      pressure: "normal", terminationOrder: ["band", "regret"], termination: [entry],
      hibernationOrder: ["footprint"], hibernation: [])
  }

  @Test
  func `Output of explain shows each entry in the orders with its numbers and what decided it`() {
    let text = renderRanking(ranking)
    #expect(text.hasPrefix("memory pressure: normal\n"))
    #expect(
      text.contains(
        "Order in which workers are terminated, by band, regret (terminate.order):\n"
          + "  1. notes (suspended): "
      ))
    #expect(text.contains("band 12 (0 + importance 5 + bonus 7), 40.0 MB"))
    #expect(text.contains("regret 2.1 ms/MB (25 % chance of use × 340 ms, estimated)"))
    #expect(text.contains("; from urgent pressure, before the next: lower band\n"))
    #expect(text.contains("      - not now: it is in shadow mode [mode]\n"))
    #expect(text.hasSuffix("No worker can be hibernated.\n"))
  }
}
