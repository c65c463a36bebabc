import JSONLines
import Linux
import Policy
import WorkerProtocol

@testable import Control
@testable import Hibernation
@testable import Supervision

extension FuzzTarget {
  /// Reads the input as what comes through sockets: lines, datagrams of sd_notify(3), requests and
  /// responses of HTTP.
  static let messages = FuzzTarget(
    read: { bytes in
      readLines(bytes)
      readDatagram(bytes)
      readHTTP(bytes)
      let text = String(decoding: bytes, as: UTF8.self)
      readUserfaultMessage(text)
      if let decoded = Base64.decode(text) {
        precondition(Base64.decode(Base64.encode(decoded)) == decoded)
      }
      _ = StartOutcome(report: bytes)
    }, seeds: { inputs(from: messageSeeds) })
}

/// Checks that the pieces of a stream give the same lines as the whole.
private func readLines(_ bytes: [UInt8]) {
  var whole = LineFramer(maximumLength: 4096)
  var pieces = LineFramer(maximumLength: 4096)
  whole.append(bytes)
  let lines = collect { () throws(LineFramer.Overflow) in try whole.next() }
  var inPieces: [[UInt8]] = []
  for start in stride(from: 0, to: bytes.count, by: 7) {
    pieces.append(bytes[start..<min(start + 7, bytes.count)])
    inPieces += collect { () throws(LineFramer.Overflow) in try pieces.next() }
  }
  precondition(lines == inPieces)
  for line in lines + [bytes] { readLine(line) }
}

private func collect(_ next: () throws(LineFramer.Overflow) -> [UInt8]?) -> [[UInt8]] {
  var all: [[UInt8]] = []
  // A line that is too long ends the stream, as its end does.
  while let line = try? next() { all.append(line) }
  return all
}

/// Checks that what is accepted is equal after it was written and read again.
private func readLine(_ line: [UInt8]) {
  // Refused lines are as good as read ones here.
  if let message = try? WorkerMessage.read(line) {
    precondition((try? WorkerMessage.read(message.line)) == message)
    _ = NotifyMessage(message)
  }
  // A line that isn't a message of a daemon is refused.
  if let message = try? DaemonMessage.read(line) {
    precondition((try? DaemonMessage.read(message.line)) == message)
  }
  if let value = JSON(line) {
    var written: [UInt8] = []
    value.write(to: &written)
    precondition(JSON(written) == value)
  }
  _ = WireCodec.requestID(in: line)
  // A request that is refused is as good as one that is read.
  _ = try? WireCodec.decode(ControlRequest.self, from: line)
}

private func readDatagram(_ bytes: [UInt8]) {
  for message in NotifyMessage.parse(bytes) {
    guard case .status(let text) = message else { continue }
    precondition(!text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
  }
  _ = StoreRequest(bytes, passed: [])
}

/// Checks that a message of the service for userfaultfd has only one form.
private func readUserfaultMessage(_ text: String) {
  if let request = UserfaultRequest(rawValue: text) { precondition(request.rawValue == text) }
  if let reply = UserfaultReply(text) { precondition(reply.text == text) }
}

private func readHTTP(_ bytes: [UInt8]) {
  var exchange = HTTPExchange(Probe.HTTPRequest(host: "localhost", port: 80, path: "/"))
  var request = HealthRequest(paths: ["/health"])
  for start in stride(from: 0, to: bytes.count, by: 97) {
    let piece = Array(bytes[start..<min(start + 97, bytes.count)])
    exchange.receive(piece)
    _ = request.receive(piece)
  }
}

private let messageSeeds = [
  #"{"type":"hello","version":1}"# + "\n" + #"{"type":"ready"}"# + "\n",
  #"{"type":"beginTask","task":"upload","limitSeconds":30.5}"#,
  #"{"type":"snapshot","mime":"image/png","base64":"iVBO"}"#, #"{"type":"done","id":7}"#,
  #"{"type":"request","id":2,"deadlineSeconds":0.25,"event":"memoryWarning","level":"urgent","#
    + #""footprintBytes":1099511627776}"#,
  #"{"id":3,"verb":"stop","workers":["a"],"list":[1,2.5e3,true,null,"\u00e9\ud83d\ude00"]}"#,
  "READY=1\nSTATUS=busy\nMAINPID=4711\nWATCHDOG_USEC=5000000\nWATCHDOG=trigger",
  "EXTEND_TIMEOUT_USEC=1000000\nX_DORMOUSE_TASK=a\nX_DORMOUSE_HOLD=1\nRELOADING=1",
  "FDSTORE=1\nFDNAME=queue\nFDPOLL=0", "FDSTOREREMOVE=1\nFDNAME=queue",
  "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
  "HTTP/1.1 204 No Content\r\nContent-Length: 12\r\nConnection: close\r\n\r\nhello",
  "keep 4711 99", "end", "AAAA/+==", "negotiate tracking", "failed 22", "refused namespace",
]

func inputs(from texts: [String]) -> [String: [UInt8]] {
  Dictionary(uniqueKeysWithValues: texts.enumerated().map { ("\($0)", Array($1.utf8)) })
}
