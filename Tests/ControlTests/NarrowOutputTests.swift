import Control
import Testing

@testable import PolicyFile
@testable import dormouse

/// Text that is too wide for a terminal is wrapped at blanks, and no word or path is cut.
@Suite("Output in a narrow terminal") struct NarrowOutputTests {
  private static func tokens(_ text: String) -> [String] {
    text.split { " \n".contains($0) }.map(String.init)
  }

  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init)
  }

  @Test func `Values and paths that have no room in their column follow below their key`() {
    let long = "{ available_below: 15%, stall: { some: 10%, window: 2s } }"
    let key = "background.safe_point.after_launch_and_more"
    let values = [
      PolicyValueReport(key: key, value: "0s", from: "policy", file: "a.yaml", line: 3),
      PolicyValueReport(
        key: "pressure.warning", value: long, from: "policy", file: "/home/me/dormouse.yaml",
        line: 21),
    ]
    for color in [false, true] {
      let text = renderPolicyValues(values, width: 80, color: color)
      #expect(Self.lines(text).allSatisfy { displayWidth($0) <= 80 }, "\(text)")
    }
    let text = renderPolicyValues(values, width: 80)
    #expect(
      text.contains("\n\(key)  0s     a.yaml:3\npressure.warning"), "\(text)")
    #expect(text.contains("\n    VALUE: \(long)\n"), "\(text)")
    #expect(text.contains("/home/me/dormouse.yaml:21"), "\(text)")
    // In a file or a pipe each value is one line.
    #expect(Self.lines(renderPolicyValues(values)).count == 3)
  }

  @Test func `The meaning of a difference follows below it, and then a value that is too long`() {
    let meaning = "workers have more time to end before they are killed, and more words"
    let long = "[hibernate, purge, warn, terminate suspended]"
    let list = [
      PolicyDifference(key: "terminate.grace", left: "2s", right: "10s", meaning: meaning),
      PolicyDifference(
        key: "ladder.urgent", left: long, right: "[purge]", meaning: nil),
    ]
    let at80 = renderPolicyDifferences(list, left: "ios-5", right: "server", width: 80)
    #expect(Self.lines(at80).allSatisfy { displayWidth($0) <= 80 }, "\(at80)")
    #expect(at80.contains("    \(meaning)\n") && at80.contains("\(long)  [purge]\n"), "\(at80)")
    let at60 = renderPolicyDifferences(list, left: "ios-5", right: "server", width: 60)
    #expect(Self.lines(at60).allSatisfy { displayWidth($0) <= 60 }, "\(at60)")
    #expect(at60.contains("    ios-5: \(long)\n"), "\(at60)")
    let wide = renderPolicyDifferences(list, left: "ios-5", right: "server")
    #expect(Self.lines(wide).count == 3 && wide.contains("10s") && wide.contains(meaning))
  }

  @Test func `An event continues below itself, and its colours take no room`() {
    var event = EventRecord(
      time: "2026-11-21T08:46:07.104Z", kind: "failed",
      text: "exited with status 3 after 12 s; it is started again in 1 h, and its log has more")
    (event.worker, event.from, event.to) = ("web", "background", "terminated")
    let plain = renderEvent(event, clock: "08:46:07.104", width: 80)
    let painted = renderEvent(event, clock: "08:46:07.104", width: 80, color: true)
    for text in [plain, painted] {
      #expect(Self.lines(text).count == 2, "\(text)")
      #expect(Self.lines(text).allSatisfy { displayWidth($0) <= 80 }, "\(text)")
    }
    #expect(plain.contains("\n    "))
    #expect(Self.tokens(plain) == Self.tokens(renderEvent(event, clock: "08:46:07.104")))
  }

  @Test func `A jetsam report leaves out columns before it cuts the mark of a victim`() {
    var record = Sample.jetsam
    record.workers[0].name = "a-worker-with-a-name"
    for width in [72, 80, 100] {
      let text = renderJetsam(record, width: width)
      #expect(Self.lines(text).allSatisfy { displayWidth($0) <= width }, "\(text)")
      #expect(text.contains("  (terminated)"), "\(text)")
      #expect(text.contains("a-worker-with-a-name: lowest band; freed 67.0 MB"), "\(text)")
    }
    #expect(!renderJetsam(record, width: 80).contains("AGE"))
  }
}
