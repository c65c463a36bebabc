import Checksum
import Linux

/// What a later daemon needs to find a worker again.
///
/// On disk it is text, `key=value` a line, and the last line holds the checksum of all before it:
///
///     dormouse-worker=1
///     name=web
///     command=python3
///     command=server.py
///     …
///     crc32=1c291ca3
///
/// Values have newlines and backslashes escaped. Keys that a reader doesn't know are skipped, so a
/// newer daemon may add some.
public struct WorkerRecord: Hashable, Sendable {
  public var name: String
  public var process: ProcessIdentity
  public var session: Int32
  /// Pids and start times repeat after a boot; this doesn't.
  public var bootID: String
  public var cgroupPath: String?
  public var command: [String]
  public var directory: String
  public var logPath: String
  public var notifySocket: String?
  public var pressureWatch: String?
  public var workerSocket: String?
  /// Inodes of the memfds in which it offers memory.
  public var purgeable: [UInt64] = []
  /// The hibernation image, while there is one.
  public var imagePath: String?
  /// Which image that is, in the hibernator's words (`ImageMark`); only while it is hibernated.
  public var imageMark: String?
  /// The directory in which that image was made (`ImageDirectory`).
  public var imageDirectory: String?
  /// The engine's name for it (`suspended`, …).
  public var state: String
  /// What `run` gave it; a declared worker has its configuration's.
  public var importance = 0
  /// When a timer of its own wakes it, while it sleeps: nanoseconds of CLOCK_BOOTTIME.
  public var alarm: Int64?
  /// When it fell asleep: nanoseconds of CLOCK_BOOTTIME.
  public var asleepSince: Int64?
  /// What its threads wait for, while it sleeps.
  public var waits: TimedWaits.Kept?
  /// The interval that it has set by `WATCHDOG_USEC=`, in nanoseconds.
  public var watchdog: Int64?
  /// It is in the foreground, or was when its daemon ended.
  public var wasInFront = false
  /// Adopted from another program, which supervises it: the daemon never ends it and never clears up after it.
  public var external: External?
  /// The name of the rule by which it was adopted.
  public var rule: String?
  /// The policy, the values and the mode that the request for its adoption has chosen.
  public var policy: String?
  public var settings: [String] = []
  public var isShadow = false
  /// Adopted workers with which it wakes.
  public var wakeWith: [String] = []
  /// Answered while it sleeps; each `PORT` or `PORT/PATH`.
  public var healthChecks: [String] = []

  public enum External: String, Hashable, Sendable {
    case mayBeTerminated = "may-be-terminated"
    case mayNot = "may-not"
  }

  public init(
    name: String, process: ProcessIdentity, session: Int32, bootID: String,
    cgroupPath: String? = nil, command: [String], directory: String, logPath: String,
    notifySocket: String? = nil, pressureWatch: String? = nil, imagePath: String? = nil,
    state: String
  ) {
    self.name = name
    self.process = process
    self.session = session
    self.bootID = bootID
    self.cgroupPath = cgroupPath
    self.command = command
    self.directory = directory
    self.logPath = logPath
    self.notifySocket = notifySocket
    self.pressureWatch = pressureWatch
    self.imagePath = imagePath
    self.state = state
  }

  public init(_ worker: WorkerProcess, bootID: String, state: String) {
    self.init(worker.plan, worker.identity, in: worker.cgroup, bootID: bootID, state: state)
  }

  /// A worker leads a session of its own.
  init(
    _ plan: LaunchPlan, _ process: ProcessIdentity, in cgroup: WorkerCgroup?, bootID: String,
    state: String
  ) {
    self.init(
      name: plan.name, process: process, session: process.pid, bootID: bootID,
      cgroupPath: cgroup?.path, command: plan.command, directory: plan.directory,
      logPath: plan.logPath, notifySocket: plan.notifySocket,
      pressureWatch: plan.pressureWatch, state: state)
    workerSocket = plan.workerSocket
  }

  /// Of the worker that it describes.
  public func life(bootID current: String) -> ProcessLife {
    bootID == current ? process.life : .hasEnded
  }
}

// MARK: - Text

extension WorkerRecord {
  private static let versionKey = "dormouse-worker"
  private static let checksumKey = "crc32"

  var encoded: String {
    var lines = [
      "\(Self.versionKey)=1", line("name", name), "pid=\(process.pid)",
      "start=\(process.startTime)", "session=\(session)", line("boot", bootID),
    ]
    lines += command.map { line("command", $0) }
    lines += [line("directory", directory), line("log", logPath), line("state", state)]
    let optional = [
      ("cgroup", cgroupPath), ("notify", notifySocket), ("pressure", pressureWatch),
      ("image", imagePath), ("mark", imageMark), ("image-directory", imageDirectory),
      ("socket", workerSocket), ("rule", rule),
      ("policy", policy),
    ]
    lines += settings.map { line("set", $0) } + wakeWith.map { line("wake-with", $0) }
    lines += healthChecks.map { line("health-check", $0) }
    if isShadow { lines.append("shadow=1") }
    if importance != 0 { lines.append("importance=\(importance)") }
    lines += purgeable.map { "purgeable=\($0)" }
    if let asleepSince { lines.append("asleep=\(asleepSince)") }
    if wasInFront { lines.append("front=1") }
    if let watchdog { lines.append("watchdog=\(watchdog)") }
    if let alarm { lines.append("alarm=\(alarm)") }
    if let waits {
      lines.append("rests=\(waits.restsSince)")
      let began = waits.began.sorted { $0.key < $1.key }
      lines += began.map { "wait=\($0.key) \($0.value)" }
    }
    if let external { lines.append("external=\(external.rawValue)") }
    for (key, value) in optional {
      if let value { lines.append(line(key, value)) }
    }
    let body = lines.joined(separator: "\n") + "\n"
    return body + "\(Self.checksumKey)=\(CRC32.ieee.text(of: body.utf8))\n"
  }

  private func line(_ key: String, _ value: String) -> String { "\(key)=\(Self.escape(value))" }

  static func decode(_ bytes: [UInt8]) throws(WorkerRecordError.Damage) -> WorkerRecord {
    let body = try verified(bytes)
    var fields: [String: [String]] = [:]
    for line in String(decoding: body, as: UTF8.self).split(separator: "\n") {
      guard let equals = line.firstIndex(of: "="),
        let value = unescape(line[line.index(after: equals)...])
      else { throw .malformed(line: String(line)) }
      fields[String(line[..<equals]), default: []].append(value)
    }
    func text(_ key: String) throws(WorkerRecordError.Damage) -> String {
      guard let value = fields[key]?.first else { throw .missing(key) }
      return value
    }
    func number<Number: FixedWidthInteger>(
      _ key: String
    ) throws(WorkerRecordError.Damage) -> Number {
      guard let value = Number(try text(key)) else { throw .missing(key) }
      return value
    }
    guard try text(versionKey) == "1" else { throw .version(try text(versionKey)) }
    var record = WorkerRecord(
      name: try text("name"),
      process: ProcessIdentity(pid: try number("pid"), startTime: try number("start")),
      session: try number("session"), bootID: try text("boot"),
      cgroupPath: fields["cgroup"]?.first, command: fields["command"] ?? [],
      directory: try text("directory"), logPath: try text("log"),
      notifySocket: fields["notify"]?.first, pressureWatch: fields["pressure"]?.first,
      imagePath: fields["image"]?.first, state: try text("state"))
    // One that can't be read is offered again by the worker itself.
    record.purgeable = (fields["purgeable"] ?? []).compactMap { UInt64($0) }
    record.imageMark = fields["mark"]?.first
    record.imageDirectory = fields["image-directory"]?.first
    record.workerSocket = fields["socket"]?.first
    if fields["importance"] != nil { record.importance = try number("importance") }
    if fields["asleep"] != nil { record.asleepSince = try number("asleep") }
    if fields["watchdog"] != nil { record.watchdog = try number("watchdog") }
    if fields["alarm"] != nil { record.alarm = try number("alarm") }
    if fields["rests"] != nil {
      record.waits = TimedWaits.Kept(
        restsSince: try number("rests"), began: began(fields["wait"] ?? []))
    }
    record.rule = fields["rule"]?.first
    record.policy = fields["policy"]?.first
    record.settings = fields["set"] ?? []
    record.wakeWith = fields["wake-with"] ?? []
    record.healthChecks = fields["health-check"] ?? []
    record.isShadow = fields["shadow"]?.first == "1"
    record.wasInFront = fields["front"]?.first == "1"
    // What can't be read protects.
    record.external = fields["external"].map { External(rawValue: $0.first ?? "") ?? .mayNot }
    return record
  }

  /// When each thread's wait began. One that can't be read is taken for a wait that began with the
  /// sleep.
  private static func began(_ waits: [String]) -> [Int32: Int64] {
    let began = waits.compactMap { text -> (Int32, Int64)? in
      let words = text.split(separator: " ")
      guard words.count == 2, let thread = Int32(words[0]), let time = Int64(words[1]) else {
        return nil
      }
      return (thread, time)
    }
    return Dictionary(began, uniquingKeysWith: { first, _ in first })
  }

  /// What is before the checksum's line, if that fits.
  private static func verified(
    _ bytes: [UInt8]
  ) throws(WorkerRecordError.Damage) -> ArraySlice<UInt8> {
    let newline = UInt8(ascii: "\n")
    guard bytes.last == newline else { throw .torn }
    let body = bytes.dropLast().lastIndex(of: newline).map { bytes[...$0] } ?? []
    let last = String(decoding: bytes[body.endIndex...].dropLast(), as: UTF8.self)
    guard !body.isEmpty, last == "\(checksumKey)=\(CRC32.ieee.text(of: body))" else { throw .torn }
    return body
  }

  static func escape(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// nil: a backslash before something that `escape` doesn't write.
  static func unescape(_ text: some StringProtocol) -> String? {
    var result = String.UnicodeScalarView()
    var scalars = text.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      guard scalar == "\\" else {
        result.append(scalar)
        continue
      }
      switch scalars.next() {
      case "\\": result.append("\\")
      case "n": result.append("\n")
      case "r": result.append("\r")
      default: return nil
      }
    }
    return String(result)
  }
}
