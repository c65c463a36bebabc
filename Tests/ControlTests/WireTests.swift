import Control
import JSONLines
import Testing

@Suite struct Wire {
  /// The value after it was encoded and decoded.
  private func roundTrip<Value: Codable>(_ value: Value) throws -> Value {
    var framer = LineFramer()
    framer.append(try WireCodec.line(for: value))
    let line = try #require(try framer.next())
    #expect(framer.pendingBytes == 0, "one value is one line")
    return try WireCodec.decode(Value.self, from: line)
  }

  @Test func `Every type is equal after encoding and decoding with every field set`() throws {
    #expect(try roundTrip(Sample.request) == Sample.request)
    #expect(try roundTrip(Sample.launch) == Sample.launch)
    #expect(try roundTrip(Sample.response) == Sample.response)
    #expect(try roundTrip(Sample.foreground) == Sample.foreground)
    #expect(try roundTrip(Sample.hibernated) == Sample.hibernated)
    #expect(try roundTrip(Sample.coded) == Sample.coded)
    #expect(try roundTrip(Sample.daemon) == Sample.daemon)
    #expect(try roundTrip(Sample.jetsam) == Sample.jetsam)
  }

  @Test func `Every type is equal after encoding and decoding with only the required fields set`()
    throws
  {
    let request = ControlRequest(id: 0, verb: .ps)
    #expect(try roundTrip(request) == request)
    let response = ControlResponse(id: 0, result: .done, text: "")
    #expect(try roundTrip(response) == response)
    let worker = WorkerReport(name: "", state: "")
    #expect(try roundTrip(worker) == worker)
  }

  @Test(arguments: ControlRequest.Verb.allCases)
  func `Every verb is encoded as its name`(verb: ControlRequest.Verb) throws {
    let request = ControlRequest(id: 1, verb: verb)
    #expect(try roundTrip(request) == request)
    let text = String(decoding: try WireCodec.json(for: request), as: UTF8.self)
    #expect(text == #"{"id":1,"verb":"\#(verb.rawValue)"}"#)
  }

  @Test func `Names with line ends and control characters stay on one line`() throws {
    let request = ControlRequest(id: 1, verb: .stop, worker: "a\nb\r\u{0}\u{1B}[31m\u{2028}ü")
    #expect(try roundTrip(request) == request)
  }

  @Test func `Encoded keys are sorted, and slashes aren't escaped`() throws {
    let request = ControlRequest(
      id: 2, verb: .run, worker: "w",
      launch: LaunchSpecification(
        command: ["/bin/ls"], directory: "/", environment: ["B": "", "A": "/"]))
    let text = String(decoding: try WireCodec.line(for: request), as: UTF8.self)
    #expect(
      text == #"{"id":2,"launch":{"command":["/bin/ls"],"directory":"/","#
        + #""environment":{"A":"/","B":""}},"verb":"run","worker":"w"}"# + "\n")
  }

  @Test func `Prose travels beside its code, and prose from an older peer gets the code other`()
    throws
  {
    let prose = CodedText("too_big", "its footprint is over the limit")
    #expect(
      String(decoding: try WireCodec.json(for: prose), as: UTF8.self)
        == #"{"code":"too_big","text":"its footprint is over the limit"}"#)
    let old = Array(#"{"id":"1","time":"t","why":"short of memory"}"#.utf8)
    struct Old: Decodable { var why: CodedText }
    #expect(try WireCodec.decode(Old.self, from: old).why == CodedText("other", "short of memory"))
  }

  @Test func `A document has the number of its schema at the top`() throws {
    let json = try WireCodec.json(for: JSONDocument(CodedText("a", "b")))
    #expect(String(decoding: json, as: UTF8.self) == #"{"code":"a","schema":1,"text":"b"}"#)
  }

  @Test func `Keys that a newer peer adds are ignored`() throws {
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
  func `A line that isn't a request is refused with the place of the error`(
    line: String, position: String
  ) {
    #expect(throws: WireError.malformed(position)) {
      try WireCodec.decode(ControlRequest.self, from: Array(line.utf8))
    }
  }

  @Test func `Bytes that aren't UTF-8, and deep nesting, are refused without a crash`() {
    #expect(throws: WireError.self) {
      try WireCodec.decode(ControlRequest.self, from: [0xFF, 0xFE, 0x00, 0x7B])
    }
    #expect(throws: WireError.self) {
      try WireCodec.decode(
        ControlRequest.self, from: [UInt8](repeating: UInt8(ascii: "["), count: 500_000))
    }
  }

  @Test func `The id of a request with an unknown verb can still be read`() {
    #expect(WireCodec.requestID(in: Array(#"{"id":9,"verb":"dance"}"#.utf8)) == 9)
    #expect(WireCodec.requestID(in: Array(#"{"verb":"dance"}"#.utf8)) == nil)
    #expect(WireCodec.requestID(in: Array("dance".utf8)) == nil)
  }

  @Test func `A number that JSON can't represent is refused with its place`() {
    var worker = WorkerReport(name: "w", state: "s")
    worker.secondsSinceUse = .infinity
    #expect(throws: WireError.unencodable("`secondsSinceUse` can't be inf")) {
      try WireCodec.line(for: worker)
    }
  }

  @Test func `A message that the peer would refuse as too long isn't sent`() {
    let request = ControlRequest(
      id: 1, verb: .stop, worker: String(repeating: "x", count: 1 << 20))
    #expect(throws: WireError.tooLong(bytes: 1_048_610, maximum: 1_048_576)) {
      try WireCodec.line(for: request)
    }
  }
}
