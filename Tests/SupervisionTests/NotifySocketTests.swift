import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct NotifyMessageTests {
  @Test(arguments: [
    ("READY=1", [NotifyMessage.ready]),
    ("READY=1\nSTATUS=up and running\n", [.ready, .status("up and running")]),
    ("RELOADING=1\nSTOPPING=1\nWATCHDOG=1", [.reloading, .stopping, .watchdog]),
    (
      "WATCHDOG=trigger\nWATCHDOG_USEC=2500000",
      [.watchdogTrigger, .watchdogInterval(.milliseconds(2500))]
    ),
    ("WATCHDOG_USEC=0", [.watchdogInterval(.zero)]),
    ("WATCHDOG=2\nWATCHDOG_USEC=-1\nWATCHDOG_USEC=often", []),
    ("EXTEND_TIMEOUT_USEC=1500000", [.extendTimeout(.milliseconds(1500))]),
    ("MAINPID=42", [.mainProcess(42)]),
    ("X_DORMOUSE_HOLD=1\nX_DORMOUSE_HOLD=0", [.hold(true), .hold(false)]),
    ("X_DORMOUSE_DONE=1", [.shedDone]),
    (
      "X_DORMOUSE_TASK=save all\nX_DORMOUSE_TASK_END=save all",
      [.taskBegan("save all"), .taskEnded("save all")]
    ),
    ("STATUS=a=b=c", [.status("a=b=c")]),
    ("STATUS=", [.status("")]),
    // These fields aren't Dormouse's, or aren't well-formed.
    ("FDSTORE=1\nERRNO=2\nREADY=0\nREADY=yes\nready=1\nX_DORMOUSE_HOLD=2", []),
    ("MAINPID=0\nMAINPID=-1\nMAINPID=99999999999\nMAINPID=\nEXTEND_TIMEOUT_USEC=-5", []),
    ("EXTEND_TIMEOUT_USEC=99999999999999999999999", []),
    ("EXTEND_TIMEOUT_USEC=18446744073709551615", [.extendTimeout(.seconds(31_536_000))]),
    ("X_DORMOUSE_TASK=", []),
    ("", []), ("\n\n\n", []), ("=", []), ("=1", []), ("READY", []), ("\0READY=1", []),
    ("STATUS=\u{1B}[2J\u{202E}x", [.status("\u{FFFD}[2J\u{FFFD}x")]),
  ])
  func `Known fields of a notification are read, and unknown ones are ignored`(
    text: String, expected: [NotifyMessage]
  ) {
    #expect(NotifyMessage.parse(Array(text.utf8)) == expected)
  }

  @Test func `Notifications with invalid UTF-8 or very many fields are bounded`() {
    let invalid = Array("STATUS=".utf8) + [0xFF, 0xC0, 0x80, 0]
    guard case .status(let text)? = NotifyMessage.parse(invalid).first else {
      Issue.record("no status")
      return
    }
    #expect(text.unicodeScalars.allSatisfy { $0 == "\u{FFFD}" })
    let long = Array("STATUS=".utf8) + [UInt8](repeating: 65, count: 60000)
    #expect(NotifyMessage.parse(long) == [.status(String(repeating: "A", count: 512))])
    let many = Array(String(repeating: "READY=1\n", count: 8000).utf8)
    #expect(NotifyMessage.parse(many).count == 64)
  }

  @Test func `Random bytes in a notification don't crash the parser`() {
    var random = TestRandom()
    let letters = Array("=\nREADY1".utf8)
    for _ in 0..<500 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0..<200, using: &random) {
        let isAny = Bool.random(using: &random)
        bytes.append(
          isAny
            ? UInt8.random(in: 0...255, using: &random)
            : letters[Int.random(in: 0..<letters.count, using: &random)])
      }
      #expect(NotifyMessage.parse(bytes).count <= 64)
    }
  }
}

@Suite struct NotifySocketTests {
  private static let client = """
    import os, socket, sys, time
    path = os.environ['NOTIFY_SOCKET']
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.connect('\\0' + path[1:] if path[0] == '@' else path)
    """

  @Test
  func
    `Notifications of a worker and its children are read, those of other processes refused`()
    throws
  {
    let worker = try TestWorker(
      "python3", "-c",
      Self.client + """

        s.send(b'READY=1\\nSTATUS=from the parent')
        if os.fork() == 0:
            s.send(b'X_DORMOUSE_TASK=child')
        time.sleep(60)
        """)
    #expect(
      try worker.messages(3) == [.ready, .status("from the parent"), .taskBegan("child")])
    let stranger = try UnixSocket.connected(to: worker.notify.path, .datagram)
    try stranger.writeAll("X_DORMOUSE_HOLD=1")
    #expect(try worker.notify.receive { worker.process.owns($0) }.isEmpty)
  }

  @Test func `At most 200 datagrams a second are read, and at most 400 at once`() throws {
    let scratch = try Scratch()
    let notify = try NotifySocket(path: "\(scratch.path)/notify")
    let stranger = try UnixSocket.connected(to: notify.path, .datagram)
    var looked = 0
    func send(_ count: Int, at seconds: Int64) throws {
      for _ in 0..<count {
        // The kernel's queue is short.
        try? stranger.writeAll("READY=1")
        _ = try notify.receive(at: seconds * 1_000_000_000) { _ in
          looked += 1
          return false
        }
      }
    }
    try send(1000, at: 100)
    #expect(looked == 400)
    #expect(!notify.mayReceive)
    try send(1000, at: 101)
    #expect(looked == 600)
  }

  @Test func `Hostile datagrams don't stop the next good one`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      Self.client + """

        import array
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        s.send(b'')
        s.send(b'\\0' * 65536)
        s.send(b'READY=1' * 20000)
        s.send(b'\\xff\\xfe=\\xff\\n=\\n\\n')
        data = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 50))]
        s.sendmsg([b'FDSTORE=1'], data)
        s.send(b'STOPPING=1')
        time.sleep(60)
        """)
    let before = try listDirectory("/proc/self/fd").count
    #expect(try worker.messages(1) == [.stopping])
    // Other tests open and close descriptors at the same time. Fifty more would be noticed.
    #expect(try eventually { try listDirectory("/proc/self/fd").count < before + 40 })
  }

  @Test func `A sender that waits until its message is read continues then (BARRIER=1)`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      Self.client + """

        import array
        # As `systemd-notify --ready` does.
        s.send(b'READY=1')
        read, write = os.pipe()
        s.sendmsg(
          [b'BARRIER=1'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [write]))])
        os.close(write)
        os.read(read, 1)
        s.send(b'STOPPING=1')
        time.sleep(60)
        """)
    #expect(try worker.messages(2) == [.ready, .stopping])
  }

  @Test func `A notification socket whose path is too long for an address gets an abstract name`()
    throws
  {
    let long = "/tmp/" + String(repeating: "x", count: 120)
    let socket = try NotifySocket.create(in: long, name: "a")
    #expect(socket.path.hasPrefix("@"))
    let client = try UnixSocket.connected(to: socket.path, .datagram)
    try client.writeAll("READY=1")
    #expect(try socket.receive { $0 == getpid() } == [.ready])
    #expect(try socket.receive { _ in true }.isEmpty)
  }

  @Test func `An error while datagrams are read loses none of those that were read before it`()
    throws
  {
    let scratch = try Scratch()
    var reads = 0
    let socket = try NotifySocket(path: "\(scratch.path)/notify") {
      (descriptor, buffer) throws(SystemCallError) in
      reads += 1
      if reads > 1 { throw SystemCallError("recvmsg", on: "", code: ENOMEM) }
      return try Reception.receive(from: descriptor, into: buffer)
    }
    let client = try UnixSocket.connected(to: socket.path, .datagram)
    try client.writeAll("READY=1")
    try client.writeAll("STATUS=second")
    #expect(try socket.receive { _ in true } == [.ready])
    // Nothing was read before this error.
    #expect(throws: SystemCallError.self) { try socket.receive { _ in true } }
  }

  @Test func `Only the socket's user may write to the notification file, which can be bound again`()
    throws
  {
    let scratch = try Scratch()
    let first = try NotifySocket.create(in: scratch.path, name: "a/b")
    var status = stat()
    #expect(stat(first.path, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    let second = try NotifySocket(path: first.path)
    try UnixSocket.connected(to: first.path, .datagram).writeAll("READY=1")
    #expect(try first.receive { _ in true }.isEmpty)
    #expect(try second.receive { _ in true } == [.ready])
    second.remove()
    #expect(access(first.path, F_OK) != 0)
  }
}
