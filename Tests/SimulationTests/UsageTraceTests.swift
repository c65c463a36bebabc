import Simulation
import Testing

/// Loads texts that are fed in pieces of any size, as a file is read.
private func load(
  _ texts: [String], pieces: Int = 7, unit: TraceLoader.Unit = .app
) throws -> Trace {
  var loader = TraceLoader(unit: unit)
  for (number, text) in texts.enumerated() {
    loader.begin(file: "file\(number).csv")
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      try loader.feed(Array(bytes[start..<min(start + pieces, bytes.count)]))
    }
    try loader.end()
  }
  return try loader.trace()
}

private func text(_ trace: Trace, _ format: TraceFormat) -> [String] {
  TraceWriter(trace).files(format).map { file in
    var text = ""
    file.makeText { text += $0 }
    return text
  }
}

private func small(_ pattern: TraceGenerator.Pattern = .zipf) -> Trace {
  TraceGenerator(
    pattern: pattern, workers: 12, length: 2 * 3_600_000, seed: 3, usesPerHour: 20
  ).trace()
}

@Suite("Traces")
struct TraceTests {
  @Test(
    "Generated traces are sorted, and the same for the same seed",
    arguments: TraceGenerator.Pattern.allCases)
  func generators(_ pattern: TraceGenerator.Pattern) {
    let trace = small(pattern)
    #expect(trace == small(pattern))
    #expect(!trace.uses.isEmpty)
    #expect(zip(trace.uses, trace.uses.dropFirst()).allSatisfy { $0.at <= $1.at })
    #expect(trace.uses.allSatisfy { (0..<12).contains($0.worker) && $0.at < trace.length })
  }

  @Test func `Traces survive being written and read in the format of Dormouse`() throws {
    let trace = small(.leaks)
    var again = try load(text(trace, .dormouse))
    again.name = trace.name
    #expect(again == trace)
  }

  @Test
  func `Dormouse's format keeps ends, uses by timers, continued uses and the first state`() throws {
    var trace = small()
    trace.workers[2].start = .running
    trace.workers[3].start = .hibernated
    trace.uses[5].count = 0
    trace.uses[6].isSelfInitiated = true
    trace.ends = [Trace.End(at: 60_000, worker: 1), Trace.End(at: 90_000, worker: 2)]
    var again = try load(text(trace, .dormouse))
    again.name = trace.name
    #expect(again == trace)
    #expect(again.useCount == trace.uses.count - 2)
  }

  @Test func `The suffix of a trace has the workers that run at its beginning`() {
    var trace = small()
    trace.ends = [Trace.End(at: 3_599_000, worker: 0)]
    let suffix = trace.suffix(3_600_000)
    #expect(suffix.length == 3_600_000 && suffix.ends.isEmpty)
    #expect(suffix.uses.count == trace.uses.count { $0.at >= 3_600_000 })
    #expect(suffix.workers[0].start == .absent)
    let used = Set(trace.uses.filter { $0.at < 3_600_000 }.map(\.worker)).subtracting([0])
    #expect(used.allSatisfy { suffix.workers[Int($0)].start == .running })
  }

  @Test func `Traces keep every invocation in the format of Azure Functions 2021`() throws {
    let trace = small()
    let again = try load(text(trace, .azure2021))
    #expect(again.useCount == trace.useCount)
    #expect(again.uses.map(\.at) == trace.uses.map(\.at))
  }

  @Test(
    "Traces keep counts per minute, durations and footprints in the format of Azure Functions 2019")
  func azure2019() throws {
    let trace = small()
    let again = try load(text(trace, .azure2019), pieces: 4096)
    #expect(again.useCount == trace.useCount)
    #expect(again.length == 86_400_000)
    let minutes = Set(trace.uses.map { "\(trace.workers[Int($0.worker)].name) \($0.at / 60_000)" })
    #expect(
      Set(again.uses.map { "\(again.workers[Int($0.worker)].name) \($0.at / 60_000)" }) == minutes)
    let longest = trace.uses.map(\.duration).max() ?? 0
    #expect(again.uses.allSatisfy { $0.duration <= longest })
    let name = again.workers[0].name
    let original = trace.workers.first { $0.name == name }
    let difference = (again.workers[0].footprint.bytes - (original?.footprint.bytes ?? 0)).magnitude
    #expect(difference < 20_000)
  }

  @Test func `Traces make a worker of each app or of each function`() throws {
    let rows = """
      app,func,end_timestamp,duration
      a,f,1.5,0.5
      a,g,2.0,0.25
      b,f,3,1
      """
    #expect(try load([rows]).workers.map(\.name) == ["a", "b"])
    #expect(try load([rows], unit: .function).workers.map(\.name) == ["a/f", "a/g", "b/f"])
    #expect(try load([rows]).uses.map(\.at) == [1000, 1750, 2000])
  }

  @Test(
    "A wrong trace is refused with the position of the error and the expected value",
    arguments: [
      ("", "file0.csv: the file is empty"),
      ("a,b\n1,2\n", "file0.csv:1:1: expected the header of a trace"),
      (
        "app,func,end_timestamp,duration\na,f,soon,1\n",
        "file0.csv:2:5: expected a number of at least 0, found 'soon'"
      ),
      (
        "app,func,end_timestamp,duration\r\na,f,1,-1\r\n",
        "file0.csv:2:7: expected a number of at least 0, found '-1'"
      ),
      ("app,func,end_timestamp,duration\na,f,1\n", "file0.csv:2:6: only 3 fields"),
      ("app,func,end_timestamp,duration\n\"a,f,1,1\n", "file0.csv:2:1: a quote without its end"),
      (
        "HashOwner,HashApp,HashFunction,Trigger,1,2\no,a,f,http,3,x\n",
        "file0.csv:2:14: expected a whole number, found 'x'"
      ),
      ("dormouse trace,2\n", "file0.csv:1:16: expected version 1 of the format"),
      (
        "dormouse trace,1\nuse,5,absent,1\n",
        "file0.csv:2:7: expected the name of a worker declared above"
      ),
      ("app,func,end_timestamp,duration\n", "file0.csv: no invocations: no worker is ever used"),
    ])
  func wrong(_ text: String, _ complaint: String) {
    let error = #expect(throws: TraceError.self) { try load([text]) }
    #expect(error?.description.hasPrefix(complaint) == true, "\(error?.description ?? "nothing")")
  }

  @Test(
    "Numbers that a calculation would overflow with are refused, with their position",
    arguments: [
      ("dormouse trace,1\nlength,3600002147483648\n", "file0.csv:2:8: expected at most 864"),
      ("dormouse trace,1\nworker,a,20,30\nend,30002147483648,a\n", "file0.csv:3:5: expected at"),
      ("dormouse trace,1\nothers,0,218446744073709551615\n", "file0.csv:2:10: expected at most"),
      ("dormouse trace,1\nworker,a,1099511627777,30\n", "file0.csv:2:10: expected at most"),
      ("dormouse trace,1\nworker,a,20,86400000001\n", "file0.csv:2:13: expected at most"),
      ("dormouse trace,1\nworker,a,20,30,1125899906842624\n", "file0.csv:2:16: expected at"),
      ("app,func,end_timestamp,duration\na,b,1e17,0.2\n", "file0.csv:2:5: expected at most"),
      ("app,func,end_timestamp,duration\na,b,14294967295.5,1\n", "file0.csv:2:5: expected at"),
      ("app,func,end_timestamp,duration\na,b,5,1e300\n", "file0.csv:2:7: expected at most"),
      (
        "HashOwner,HashApp,SampleCount,a,b,c,d,e,f,g,h,i\no,a,1,1,1,1,1,1e300,1,1,1,1\n",
        "file0.csv:2:15: expected at most 1048576 MB"
      ),
    ])
  func tooLarge(_ text: String, _ complaint: String) { wrong(text, complaint) }

  @Test("Files without line breaks, or that aren't text, are refused and not kept in memory")
  func noLineBreaks() {
    var loader = TraceLoader()
    loader.begin(file: "zeros")
    let piece = [UInt8](repeating: 0, count: 1 << 19)
    let error = #expect(throws: TraceError.self) { for _ in 0..<4 { try loader.feed(piece) } }
    #expect(error?.what.contains("more than 1 MB") == true)
  }
}
