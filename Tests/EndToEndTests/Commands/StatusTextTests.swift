import TestSupport
import Testing

@Suite("Status texts of workers") struct StatusTextTests {
  @Test("READY=1 makes a worker ready, and `status` shows the text of STATUS=")
  func shown() throws {
    let scratch = try Scratch()
    let script = try scratch.write(
      "talker.py",
      """
      import os, socket, time
      line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      path = os.environ["NOTIFY_SOCKET"]
      line.connect("\\0" + path[1:] if path[0] == "@" else path)
      line.send(b"STATUS=counting sheep\\nREADY=1")
      time.sleep(600)
      """)
    let daemon = try TestDaemon(
      """
      workers:
        talker: { command: [\(Surroundings.python), \(script)], readiness: { notify: true } }
      """)
    try daemon.wait("talker", toBe: "foreground")
    #expect(try daemon.worker("talker").says == "counting sheep")
    let status = try daemon.done("status", "talker")
    #expect(status.contains("says") && status.contains("counting sheep"), "\(status)")
  }
}
