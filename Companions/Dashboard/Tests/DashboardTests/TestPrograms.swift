import Foundation
import Testing

/// The programs that tests start, and their paths.
enum Programs {
  /// The program beside the tests' own executable.
  static let dashboard: String = {
    let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (path as NSString).deletingLastPathComponent + "/dormouse-dashboard"
  }()

  static let root = (0..<5).reduce(URL(filePath: #filePath)) { url, _ in
    url.deletingLastPathComponent()
  }.path

  /// The path in `DORMOUSE`, or else the debug build of this source tree.
  static let dormouse =
    ProcessInfo.processInfo.environment["DORMOUSE"] ?? "\(root)/.build/debug/dormouse"

  static var hasDormouse: Bool { FileManager.default.isExecutableFile(atPath: dormouse) }

  static let chromium = [
    "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
  ]
  .first { FileManager.default.isExecutableFile(atPath: $0) }

  /// A free port of 127.0.0.1.
  static func freePort() throws -> UInt16 {
    let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(file) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(file, $0, size) + getsockname(file, $0, &size)
      }
    }
    guard result == 0 else { throw Failure("no port: errno \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }

  /// A pipe whose ends aren't inherited by programs that other tests start at the same time (see
  /// `WebClient.open`): the reader would wait for those.
  static func pipe() -> Pipe {
    let pipe = Pipe()
    for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    return pipe
  }

  struct Outcome {
    var code: Int32
    var output: String
  }

  /// Runs a program to its end.
  static func run(_ program: String, _ arguments: [String], _ environment: [String: String] = [:])
    throws -> Outcome
  {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let pipe = pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Outcome(code: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }
}

/// The dashboard, as its executable; it ends with this object.
final class RunningDashboard {
  let process = Process()
  /// The address, with the token.
  let url: String
  let token: String
  let client: WebClient
  /// The cookie of a browser's session.
  let cookie: [String: String]

  init(socket: String, _ options: [String] = []) throws {
    process.executableURL = URL(filePath: Programs.dashboard)
    process.arguments = ["--listen", "127.0.0.1:0", "--socket", socket] + options
    let pipe = Programs.pipe()
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let line = try WebClient.read(pipe.fileHandleForReading.fileDescriptor) { $0.hasSuffix("\n") }
    let text = line.trimmingCharacters(in: .newlines)
    let parts = text.split(separator: "/?token=")
    guard parts.count == 2, let port = parts[0].split(separator: ":").last.flatMap({ UInt16($0) })
    else {
      process.terminate()
      throw Failure("no address: \(line)")
    }
    url = text
    token = String(parts[1])
    client = WebClient(port: port)
    let login = try client.get("/?token=\(token)")
    guard let session = login.headers["set-cookie"]?.prefix(while: { $0 != ";" }) else {
      process.terminate()
      throw Failure("no session: \(login)")
    }
    cookie = ["Cookie": String(session)]
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }

  /// Returns the page's token, from the first event of its stream.
  func actionToken() throws -> String {
    let text = try client.stream("/api/stream", cookie) {
      $0.contains("event: hello\ndata: ") && $0.contains("\"version\"")
    }
    guard let start = text.range(of: "\"token\":\"") else { throw Failure("no token: \(text)") }
    return String(text[start.upperBound...].prefix { $0 != "\"" })
  }
}

/// A real daemon with real workers; both end with this object.
final class RunningDaemon {
  let scratch = try? Scratch()
  let socket: String
  private let directory: String
  private var process: Process?

  /// - Parameter workers: The lines below `workers:`.
  init(_ workers: String) throws {
    guard let directory = scratch?.path else { throw Failure("no directory") }
    self.directory = directory
    socket = "\(directory)/control.sock"
    // The machine stalls now and then, and no test here is about pressure or idle times.
    let text = """
      policy: ios-5
      policy_overrides:
        pressure: { warning: never, urgent: never, critical: { available_below: 1% } }
        background: { suspend_after: never }
        hibernate: { after: never }
      workers:

      """ + workers
    try Data(text.utf8).write(to: URL(filePath: "\(directory)/dormouse.yaml"))
    try start()
  }

  func start() throws {
    let process = Process()
    process.executableURL = URL(filePath: Programs.dormouse)
    process.arguments = [
      "daemon", "--config", "\(directory)/dormouse.yaml", "--socket", socket, "--state-directory",
      "\(directory)/state",
    ]
    // There is no cgroup, which every machine permits; and a debug build measures its loop.
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["DORMOUSE_CGROUP": "/proc/nowhere", "DORMOUSE_LOOP_CHECK": "5s"]) { $1 }
    process.standardInput = FileHandle.nullDevice
    guard FileManager.default.createFile(atPath: "\(directory)/log", contents: nil) else {
      throw Failure("no log in \(directory)")
    }
    process.standardOutput = FileHandle(forWritingAtPath: "\(directory)/log")
    process.standardError = process.standardOutput
    try process.run()
    self.process = process
    let answers = try eventually { try ask("ps").code == 0 }
    if !answers { throw Failure("the daemon doesn't answer") }
  }

  var pid: Int32 { process?.processIdentifier ?? 0 }

  func ask(_ arguments: String...) throws -> Programs.Outcome {
    try Programs.run(Programs.dormouse, arguments + ["--socket", socket])
  }

  func state(of worker: String) throws -> String {
    let text = try ask("status", worker, "--json").output
    let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    return report?["state"] as? String ?? ""
  }

  func wait(for worker: String, _ states: String...) throws {
    let isThere = try eventually { states.contains(try state(of: worker)) }
    if !isThere {
      throw Failure(
        "\(worker) is \(try state(of: worker)), not \(states): \(try ask("ps").output)")
    }
  }

  /// Ends the daemon; its workers too.
  func stop() {
    // If the daemon doesn't end by itself, it is ended below.
    _ = try? ask("shutdown")
    if let process, process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process?.waitUntilExit()
    process = nil
  }

  deinit { stop() }
}
