import TestSupport
import Testing
import WorkerProtocol

@Suite struct MessageTests {
  static let fromDaemon: [DaemonMessage] = [
    .hello(version: 1, worker: "a \"b\"\n)", state: "background", pressure: "normal"),
    .request(id: 1, deadlineSeconds: 5, .didEnterBackground),
    .request(
      id: .max >> 1, deadlineSeconds: 0.25, .memoryWarning(level: "urgent", footprintBytes: 1 << 40)
    ),
    .request(id: 3, deadlineSeconds: 1, .willSuspend),
    .request(id: 4, deadlineSeconds: 2, .willTerminate(reason: "memory")),
    .request(id: 5, deadlineSeconds: 1, .taskExpired(task: "upload")),
    .didResume(id: 6, asleepSeconds: 3600.5, cause: "a connection"),
    .didEnterForeground(id: 7), .pressure(level: "critical"), .error(message: "`id` is missing"),
  ]
  static let fromWorker: [WorkerMessage] = [
    .hello(version: 1), .ready, .done(id: 7), .beginTask(name: "upload", limitSeconds: nil),
    .beginTask(name: "ü", limitSeconds: 30), .endTask(name: "upload"), .hold(true), .hold(false),
    .snapshot(.text("3 entries\n")), .snapshot(.image(mime: "image/png", base64: "iVBO")),
    .purgeable, .status("busy"),
  ]

  @Test("A message of the daemon is equal after encoding and reading", arguments: fromDaemon)
  func daemonsLinesReadBack(_ message: DaemonMessage) throws {
    #expect(!message.line.contains(UInt8(ascii: "\n")))
    #expect(try DaemonMessage.read(message.line) == message)
  }

  @Test("A message of a worker is equal after encoding and reading", arguments: fromWorker)
  func workersLinesReadBack(_ message: WorkerMessage) throws {
    #expect(!message.line.contains(UInt8(ascii: "\n")))
    #expect(try WorkerMessage.read(message.line) == message)
  }

  @Test func `Types and keys of a newer peer are ignored`() throws {
    #expect(try WorkerMessage.read(Array(#"{"type":"dance"}"#.utf8)) == nil)
    #expect(try DaemonMessage.read(Array(#"{"type":"dance","id":1}"#.utf8)) == nil)
    #expect(
      try WorkerMessage.read(Array(#"{"id":7,"freed":1,"type":"done"}"#.utf8)) == .done(id: 7))
  }

  @Test("A damaged line is refused, ignored or a message that reads back, whatever stands there")
  func damagedLines() throws {
    var random = TestRandom()
    for line in Self.fromDaemon.map(\.line) + Self.fromWorker.map(\.line) {
      for _ in 0..<50 {
        let damaged = random.mutated(line)
        // A refused line is as good as a valid one here.
        if let message = try? WorkerMessage.read(damaged) {
          #expect(try WorkerMessage.read(message.line) == message)
        }
        _ = try? DaemonMessage.read(damaged)
      }
    }
  }

  static let senseless = [
    "", "7", "[]", "{", #"{"id":7}"#, #"{"type":7}"#, #"{"type":"done"}"#,
    #"{"type":"done","id":"7"}"#, #"{"type":"done","id":-1}"#, #"{"type":"done","id":1.5}"#,
    #"{"type":"beginTask"}"#, #"{"type":"beginTask","task":""}"#,
    #"{"type":"beginTask","task":"a","limitSeconds":-1}"#,
    #"{"type":"beginTask","task":"a","limitSeconds":"soon"}"#,
    #"{"type":"hold"}"#, #"{"type":"hold","on":1}"#, #"{"type":"snapshot"}"#,
  ]

  @Test("A line that makes no sense is refused", arguments: senseless)
  func senselessLinesAreRefused(_ line: String) {
    #expect(throws: WorkerMessageError.self) { try WorkerMessage.read(Array(line.utf8)) }
  }
}
