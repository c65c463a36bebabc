import Control
import Testing

@Suite("What sleep saves now") struct SavedNowTests {
  @Test func `Status of the daemon begins with what sleep saves now`() {
    var helper = Sample.hibernated
    helper.saved = 85_000_000
    let workers = [helper, Sample.foreground]
    #expect(savedNowText(workers) == "81.1 MB of 145.3 MB (56 %)")
    #expect(savedNowText([Sample.foreground]) == "0 B of 64.2 MB (0 %)")
    #expect(savedNowText([]) == nil)
    let lines = renderDaemonStatus(Sample.daemon, workers: workers).split(separator: "\n")
    #expect(lines[1] == "  saved now    81.1 MB of 145.3 MB (56 %)", "\(lines)")
    #expect(lines.count { $0.contains("saved now") } == 1, "\(lines)")
  }
}
