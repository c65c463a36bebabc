import Control
import JSONLines
import Testing

@Suite struct Wire {
  /// What came back after a trip over the wire.
  private func roundTrip<Value: Codable>(_ value: Value) throws -> Value {
    var framer = LineFramer()
    framer.append(try WireCodec.line(for: value))
    let line = try #require(try framer.next())
    #expect(framer.pendingBytes == 0, "one value is one line")
    return try WireCodec.decode(Value.self, from: line)
  }

  @Test func `every type survives a round trip, with every field set`() throws {
    #expect(try roundTrip(Sample.request) == Sample.request)
    #expect(try roundTrip(Sample.launch) == Sample.launch)
    #expect(try roundTrip(Sample.response) == Sample.response)
    #expect(try roundTrip(Sample.foreground) == Sample.foreground)
    #expect(try roundTrip(Sample.hibernated) == Sample.hibernated)
    #expect(try roundTrip(Sample.coded) == Sample.coded)
    #expect(try roundTrip(Sample.daemon) == Sample.daemon)
    #expect(try roundTrip(Sample.jetsam) == Sample.jetsam)
  }

  @Test func `every type survives a round trip with nothing set that needn't be`() throws {
    let request = ControlRequest(id: 0, verb: .ps)
    #expect(try roundTrip(request) == request)
    let response = ControlResponse(id: 0, result: .done, text: "")
    #expect(try roundTrip(response) == response)
    let worker = WorkerReport(name: "", state: "")
    #expect(try roundTrip(worker) == worker)
  }

  @Test(arguments: ControlRequest.Verb.allCases)
  func `every verb travels as its name`(verb: ControlRequest.Verb) throws {
    let request = ControlRequest(id: 1, verb: verb)
    #expect(try roundTrip(request) == request)
    let text = String(decoding: try WireCodec.json(for: request), as: UTF8.self)
    #expect(text == #"{"id":1,"verb":"\#(verb.rawValue)"}"#)
  }

  @Test(
    arguments: [ControlResponse.Result.done, .refused, .failed, .unknownWorker, .badRequest])
  func `every result survives a round trip`(result: ControlResponse.Result) throws {
    let response = ControlResponse(id: 3, result: result, text: "t")
    #expect(try roundTrip(response) == response)
  }

  @Test func `names with line ends and control characters stay on one line`() throws {
    let request = ControlRequest(id: 1, verb: .stop, worker: "a\nb\r\u{0}\u{1B}[31m\u{2028}ü")
    #expect(try roundTrip(request) == request)
  }

  @Test func `keys are sorted and slashes are plain`() throws {
    let request = ControlRequest(
      id: 2, verb: .run, worker: "w",
      launch: LaunchSpecification(
        command: ["/bin/ls"], directory: "/", environment: ["B": "", "A": "/"]))
    let text = String(decoding: try WireCodec.line(for: request), as: UTF8.self)
    #expect(
      text == #"{"id":2,"launch":{"command":["/bin/ls"],"directory":"/","#
        + #""environment":{"A":"/","B":""}},"verb":"run","worker":"w"}"# + "\n")
  }

  @Test func `prose travels beside its code, and an older peer's prose has the code other`() throws
  {
    let why = CodedText("too_big", "its footprint is over the limit")
    #expect(
      String(decoding: try WireCodec.json(for: why), as: UTF8.self)
        == #"{"code":"too_big","text":"its footprint is over the limit"}"#)
    let old = Array(#"{"id":"1","time":"t","why":"short of memory"}"#.utf8)
    struct Old: Decodable { var why: CodedText }
    #expect(try WireCodec.decode(Old.self, from: old).why == CodedText("other", "short of memory"))
  }

  @Test func `a document has the number of its schema at the top`() throws {
    let json = try WireCodec.json(for: JSONDocument(CodedText("a", "b")))
    #expect(String(decoding: json, as: UTF8.self) == #"{"code":"a","schema":1,"text":"b"}"#)
  }

  @Test func `keys that a newer peer adds are ignored`() throws {
    let line = Array(#"{"id":4,"verb":"ps","colour":"blue"}"#.utf8)
    #expect(
      try WireCodec.decode(ControlRequest.self, from: line) == ControlRequest(id: 4, verb: .ps))
  }

  @Test(
    arguments: [
      ("", "not valid JSON, or a number is out of range"),
      ("hello", "not valid JSON, or a number is out of range"),
      ("{\"id\":1,\"verb\":\"ps\"", "not valid JSON, or a number is out of range"),
      ("[1]", "not a JSON object"),
      ("null", "not a JSON object"),
      ("{\"verb\":\"ps\"}", "`id` is missing"),
      ("{\"id\":-1,\"verb\":\"ps\"}", "not valid JSON, or a number is out of range"),
      ("{\"id\":\"1\",\"verb\":\"ps\"}", "`id` has the wrong type"),
      ("{\"id\":1,\"verb\":\"dance\"}", "`verb` has an unknown value"),
      (
        "{\"id\":1,\"verb\":\"run\",\"launch\":{\"command\":[1]}}",
        "`launch.command.0` has the wrong type"
      ),
    ])
  func `a line that is no request is refused with the place`(line: String, why: String) {
    #expect(throws: WireError.malformed(why)) {
      try WireCodec.decode(ControlRequest.self, from: Array(line.utf8))
    }
  }

  @Test func `bytes that are no UTF-8, and deep nesting, are refused and crash nothing`() {
    #expect(throws: WireError.self) {
      try WireCodec.decode(ControlRequest.self, from: [0xFF, 0xFE, 0x00, 0x7B])
    }
    #expect(throws: WireError.self) {
      try WireCodec.decode(
        ControlRequest.self, from: [UInt8](repeating: UInt8(ascii: "["), count: 500_000))
    }
  }

  @Test func `the id of a request with an unknown verb can still be read`() {
    #expect(WireCodec.requestID(in: Array(#"{"id":9,"verb":"dance"}"#.utf8)) == 9)
    #expect(WireCodec.requestID(in: Array(#"{"verb":"dance"}"#.utf8)) == nil)
    #expect(WireCodec.requestID(in: Array("dance".utf8)) == nil)
  }

  @Test func `a number that JSON has no word for is refused with its place`() {
    var worker = WorkerReport(name: "w", state: "s")
    worker.secondsSinceUse = .infinity
    #expect(throws: WireError.unencodable("`secondsSinceUse` can't be inf")) {
      try WireCodec.line(for: worker)
    }
  }

  @Test func `a message that the peer's framer would refuse isn't sent`() {
    let request = ControlRequest(
      id: 1, verb: .stop, worker: String(repeating: "x", count: 1 << 20))
    #expect(throws: WireError.tooLong(bytes: 1_048_610, maximum: 1_048_576)) {
      try WireCodec.line(for: request)
    }
  }
}
