import TestSupport
import Testing

@testable import Control

@Suite("When a log's lines were written") struct LogTimelineTests {
  private let timeline = LogTimeline(text: "100 10\n105 50\ndamaged\n103 60\n110 90\n120 80\n")

  @Test(
    "A line's time is that of the first note that includes it; after the last one it isn't known")
  func times() {
    #expect(timeline.time(at: 1) == 100 && timeline.time(at: 10) == 100)
    #expect(timeline.time(at: 11) == 105 && timeline.time(at: 90) == 110)
    #expect(timeline.time(at: 91) == nil)
  }

  @Test func `Nothing that was written since a time is left out`() {
    #expect(timeline.offset(since: 99) == 0)
    #expect(timeline.offset(since: 100) == 10 && timeline.offset(since: 109) == 50)
    #expect(timeline.offset(since: 500) == 90)
    #expect(LogTimeline(text: "").offset(since: 1) == nil && LogTimeline(text: "").isEmpty)
  }

  @Test func `Without notes, all of a log was written by its last change`() throws {
    let scratch = try Scratch()
    let log = try scratch.write("web.log", "one\n")
    let timeline = LogTimeline(path: nil, log: log)
    #expect(timeline.offset(since: .max) == 4 && timeline.offset(since: 0) == 0)
    #expect(timeline.time(at: 4) != nil && timeline.time(at: 5) == nil)
  }
}
