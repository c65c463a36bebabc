import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct OutputRoomTests {
  @Test
  func `A worker that had no room for its output is woken when its client reads on`() throws {
    let worker = try Sleeper(
      """
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      connection, _ = listener.accept()
      connection.setblocking(False)
      try:
          while True: connection.send(bytes(1 << 16))
      except BlockingIOError: print('full', flush=True)
      connection.setblocking(True)
      connection.sendall(b'end')
      print('sent', flush=True)
      time.sleep(60)
      """)
    let port = try worker.port()
    let client = try Client.connect(port: port)
    #expect(try eventually { worker.log.contains("full") })
    let sources = try worker.sleepQuietly()
    var reason: String?
    let isCalled = try eventually {
      if try pollDescriptor(client.raw, for: POLLIN, until: Deadline(in: .zero)) {
        _ = try client.read(upTo: 1 << 20)
      }
      reason = sources.nextReason()
      return reason != nil
    }
    #expect(isCalled && reason == "room for output on a connection to port \(port)")
    try worker.resume()
    #expect(try eventually { worker.log.contains("sent") })
  }
}
