import Control
import JSONLines
import TestSupport

extension FakeConnection {
  /// The next `count` requests, or fewer if the client closes the connection.
  func requests(_ count: Int) -> [ControlRequest] {
    var framer = LineFramer()
    var result: [ControlRequest] = []
    while result.count < count {
      let bytes = receive()
      guard !bytes.isEmpty else { return result }
      framer.append(bytes[...])
      while let line = try? framer.next() {
        guard let request = try? WireCodec.decode(ControlRequest.self, from: line) else { continue }
        result.append(request)
      }
    }
    return result
  }

  func send(_ response: ControlResponse) {
    send((try? WireCodec.line(for: response, atMost: WireCodec.longestAnswer)) ?? [])
  }
}
