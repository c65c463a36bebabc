import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Snapshots of workers") struct SnapshotTests {
  private static let script = """
    import json, os, socket, sys
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(os.environ["DORMOUSE_WORKER_SOCKET"])
    for line in open(sys.argv[1]): daemon.sendall(line.encode())
    daemon.sendall(b'{"type":"ready"}\\n')
    print("up", flush=True)
    for line in daemon.makefile():
      print(line, end="", flush=True)
      message = json.loads(line)
      if "deadlineSeconds" in message: daemon.sendall(b'{"type":"done","id":%d}\\n' % message["id"])
    """

  private static func daemon(_ scratch: Scratch, _ lines: String) throws -> TestDaemon {
    let script = try scratch.write("show.py", script)
    let file = try scratch.write("lines", lines + "\n")
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        album: { command: [\(TestMachine.python), \(script), \(file)], readiness: { notify: true } }
      """, setting: TestMachine.hasCgroups ? .frozen : .traced)
    try daemon.wait("album", toBe: "foreground")
    return daemon
  }

  @Test("A worker's text snapshot is shown while it sleeps, also by the next daemon, until it ends")
  func text() throws {
    let scratch = try Scratch()
    let daemon = try Self.daemon(
      scratch,
      #"{"type":"snapshot","text":"old"}"# + "\n"
        + #"{"type":"snapshot","text":"3 entries\nthe last: \u001b[2J"}"#)
    let file = "\(daemon.state)/snapshots/album"
    var status = stat()
    // Another thread writes it.
    #expect(try eventually { stat(file, &status) == 0 })
    #expect(status.st_mode & 0o777 == 0o600)
    try daemon.done("suspend", "album")
    // How far the labels are apart depends on the longest of them.
    let shown = try daemon.done("status", "album").split(separator: " ").joined(separator: " ")
    #expect(shown.contains("snapshot 3 entries …"))
    #expect(
      try daemon.done("status", "album", "--snapshot") == "3 entries\nthe last: \u{1b}[2J\n")
    try daemon.restartAfterCrash()
    #expect(try daemon.worker("album").snapshot?.text?.hasPrefix("3 entries\n") == true)
    try daemon.done("stop", "album")
    #expect(try daemon.worker("album").snapshot == nil)
    #expect(try eventually { access(file, F_OK) != 0 })
    let outcome = try daemon.verb("status", "album", "--snapshot")
    #expect(outcome.code == 1)
    #expect(outcome.error == "dormouse: album has reported no snapshot\n")
  }

  @Test("`status` shows a snapshot image's type and size, and writes the image out byte for byte")
  func image() throws {
    let scratch = try Scratch()
    let daemon = try Self.daemon(
      scratch, #"{"type":"snapshot","mime":"image/png","data":"iVBORw0KGgA="}"#)
    #expect(try daemon.done("status", "album").contains("image/png, 8 B"))
    let report = try daemon.json(WorkerReport.self, "status", "album")
    #expect(report.snapshot == SnapshotReport(mime: "image/png", size: 8))
    let file = scratch.uniquePath("png")
    let command = Command(arguments: [
      "sh", "-c",
      "'\(TestMachine.executable)' status album --snapshot --socket '\(daemon.socket)' > '\(file)'",
    ])
    #expect(try command.run(in: scratch).code == 0)
    #expect(try readFile(file) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x00])
  }
}
