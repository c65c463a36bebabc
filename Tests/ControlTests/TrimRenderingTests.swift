import Testing

@testable import Control

@Suite("How trims of workers are shown") struct TrimRenderingTests {
  private static let sentence =
    "trimmed 3 m ago: 52.1 MB → 3.6 MB in RAM; 1.1 MB came back since; the next trim is in 7 m "
    + "at the earliest"

  private static var trimmed: WorkerReport {
    var worker = Sample.foreground
    worker.name = "web"
    var trim = TrimReport(code: "trimmed", text: sentence, swapped: 50_855_936, trims: 2)
    trim.last = TrimReport.Last(
      secondsAgo: 180, residentBefore: 54_630_809, residentAfter: 3_774_873, swapped: 50_855_936,
      seconds: 0.12, stoppedSeconds: 0.018)
    trim.cameBack = 1_153_434
    trim.nextSeconds = 420
    worker.trim = trim
    return worker
  }

  @Test("Output of ps shows what is in swap, and fits into the terminal", arguments: [80, 120])
  func table(width: Int) {
    let text = renderProcessTable([Self.trimmed, Sample.hibernated], width: width)
    let lines = text.split(separator: "\n")
    #expect(lines.allSatisfy { displayWidth(String($0)) <= width }, "\(text)")
    #expect(lines[0].contains("FOOTPRINT  SWAPPED  "), "\(text)")
    #expect(lines[1].contains("  64.2 MB  48.5 MB  "), "\(text)")
    #expect(lines[2].contains("   4.0 KB        -  "), "\(text)")
    let words = text.split { " \n".contains($0) }.joined(separator: " ")
    #expect(words.contains("footprint 64.2 MB (48.5 MB swapped), images 3.4 MB"), "\(text)")
    #expect(text.contains("foreground on request"), "\(text)")
  }

  @Test("Output of ps has no column for swap if no worker has memory there")
  func noColumn() {
    var worker = Self.trimmed
    worker.trim?.swapped = 0
    let text = renderProcessTable([worker])
    #expect(!text.contains("SWAPPED") && !text.contains("swapped"), "\(text)")
  }

  @Test("Output of status and explain has the sentence about the trims", arguments: [80, nil])
  func sentence(width: Int?) {
    let status = renderWorkerStatus(Self.trimmed, width: width)
    var report = ExplanationReport(
      worker: "web", state: "foreground", secondsInState: 60, because: Self.trimmed.reason)
    report.trim = Self.trimmed.trim
    let explanation = renderExplanation(report, width: width)
    for (text, label) in [(status, "  trim  "), (explanation, "Trims: ")] {
      let words = text.split { " \n".contains($0) }.joined(separator: " ")
      #expect(words.contains(Self.sentence), "\(text)")
      #expect(text.contains(label), "\(text)")
      if let width {
        let lines = text.split(separator: "\n")
        #expect(lines.allSatisfy { displayWidth(String($0)) <= width }, "\(text)")
      }
    }
  }

  @Test("Output of status says nothing about trims of a sleeping worker with nothing in swap")
  func asleep() {
    var worker = Sample.hibernated
    worker.trim = TrimReport(code: "not_trimmed", text: Self.sentence, swapped: 0, trims: 0)
    #expect(!renderWorkerStatus(worker).contains("trim"))
    worker.trim?.swapped = 4096
    #expect(renderWorkerStatus(worker).contains("  trim  "))
  }

  @Test("The memory pane of top shows what is in swap before the first status, and the trims")
  func pane() {
    var model = TopModel(columns: 120, rows: 40)
    model.show([Self.trimmed], Sample.daemon)
    _ = model.press(.character("m"))
    let lines = model.screen(color: false)
    #expect(lines.contains { $0.contains("swapped") && $0.contains("48.5 MB") }, "\(lines)")
    #expect(lines.contains { $0.contains("trims: trimmed 3 m ago: 52.1 MB") }, "\(lines)")
  }

  @Test("Metrics have the number of trims, the moved bytes and those that came back")
  func metrics() {
    var worker = Self.trimmed
    var counters = WorkerCounters()
    (counters.trims, counters.trimmed) = (3, 123_456)
    worker.counters = counters
    let page = renderOpenMetrics(daemon: Sample.daemon, workers: [worker])
    for line in [
      #"dormouse_worker_trims_total{worker="web"} 3"#,
      #"dormouse_worker_trimmed_bytes_total{worker="web"} 123456"#,
      #"dormouse_worker_trim_returned_bytes{worker="web"} 1153434"#,
    ] { #expect(page.contains("\(line)\n"), "\(line)") }
    worker.counters = WorkerCounters()
    #expect(
      !renderOpenMetrics(daemon: Sample.daemon, workers: [worker]).contains("trims_total{"),
      "an earlier daemon")
  }
}
