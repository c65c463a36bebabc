import Checksum
import Linux

/// The data by which a later daemon finds a worker again.
///
/// On disk it is text with one `key=value` per line. The last line holds the checksum of all lines
/// before it:
///
///     dormouse-worker=1
///     name=web
///     command=python3
///     command=server.py
///     …
///     crc32=1c291ca3
///
/// Newlines and backslashes in values are escaped. A reader skips keys that it doesn't know, so a
/// newer daemon may add some.
public struct WorkerRecord: Hashable, Sendable {
  public var name: String
  public var process: ProcessIdentity
  public var session: Int32
  /// The kernel's id of this boot. Pids and start times repeat after a boot; this id doesn't.
  public var bootID: String
  public var cgroupPath: String?
  /// The inode of the cgroup. A later run's group has the same path and another inode.
  public var cgroupInode: UInt64?
  public var command: [String]
  public var directory: String
  public var logPath: String
  public var notifySocket: String?
  public var pressureWatch: String?
  public var workerSocket: String?
  /// The inodes of the memfds in which the worker offers purgeable memory.
  public var purgeable: [UInt64] = []
  /// The path of the hibernation image, if there is one.
  public var imagePath: String?
  /// The image's identity for the hibernator (`ImageMark`). It is only set while the worker is
  /// hibernated.
  public var imageMark: String?
  /// The directory in which the image was made (`ImageDirectory`).
  public var imageDirectory: String?
  /// The engine's name of the worker's state (`suspended`, …).
  public var state: String
  /// The importance that `run` has given it. A declared worker has the one of its configuration.
  public var importance = 0
  /// The time at which its own timer wakes it while it sleeps, in nanoseconds of CLOCK_BOOTTIME.
  public var alarm: Int64?
  /// The time at which it fell asleep, in nanoseconds of CLOCK_BOOTTIME.
  public var asleepSince: Int64?
  /// The timed waits of its threads, while it sleeps.
  public var waits: TimedWaits.Kept?
  /// The interval that it has set by `WATCHDOG_USEC=`, in nanoseconds.
  public var watchdog: Int64?
  /// True if it is in the foreground, or was when its daemon ended.
  public var wasInFront = false
  /// Set if the worker was adopted from another program, which supervises it. The daemon never
  /// restarts it and never removes its files.
  public var external: External?
  /// The name of the rule by which it was adopted.
  public var rule: String?
  /// The policy, the settings and the mode that the adopting request has chosen.
  public var policy: String?
  public var settings: [String] = []
  public var isShadow = false
  /// The adopted workers that wake together with it.
  public var wakeWith: [String] = []
  /// The health checks that the daemon answers while it sleeps, each as `PORT` or `PORT/PATH`.
  public var healthChecks: [String] = []

  public enum External: String, Hashable, Sendable {
    case mayBeTerminated = "may-be-terminated"
    case mayNot = "may-not"
  }
}

extension WorkerRecord {
  public init(_ worker: WorkerProcess, bootID: String, state: String) {
    self.init(worker.plan, worker.identity, in: worker.cgroup, bootID: bootID, state: state)
  }

  /// Describes a worker that leads a session of its own.
  init(
    _ plan: LaunchPlan, _ process: ProcessIdentity, in cgroup: WorkerCgroup?, bootID: String,
    state: String
  ) {
    self.init(
      name: plan.name, process: process, session: process.pid, bootID: bootID,
      cgroupPath: cgroup?.path, command: plan.command, directory: plan.directory,
      logPath: plan.logPath, notifySocket: plan.notifySocket,
      pressureWatch: plan.pressureWatch, workerSocket: plan.workerSocket, state: state)
    cgroupInode = cgroup?.inode
  }

  /// Whether the recorded process still lives.
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
    if let cgroupInode { lines.append("cgroup-inode=\(cgroupInode)") }
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
    // A value may begin with a combining scalar, which forms one Character with the "=".
    for line in String(decoding: body, as: UTF8.self).unicodeScalars.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "="),
        let value = unescape(Substring(line[line.index(after: equals)...]))
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
      workerSocket: fields["socket"]?.first, imagePath: fields["image"]?.first,
      imageMark: fields["mark"]?.first, imageDirectory: fields["image-directory"]?.first,
      state: try text("state"))
    // A number that can't be read is skipped: the worker itself offers its memory again.
    record.purgeable = (fields["purgeable"] ?? []).compactMap { UInt64($0) }
    if fields["importance"] != nil { record.importance = try number("importance") }
    if fields["asleep"] != nil { record.asleepSince = try number("asleep") }
    if fields["watchdog"] != nil { record.watchdog = try number("watchdog") }
    if fields["alarm"] != nil { record.alarm = try number("alarm") }
    if fields["cgroup-inode"] != nil { record.cgroupInode = try number("cgroup-inode") }
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
    // A value that can't be read counts as the one that protects the worker.
    record.external = fields["external"].map { External(rawValue: $0.first ?? "") ?? .mayNot }
    return record
  }

  /// The time at which each thread's wait began. An entry that can't be read is skipped, and counts
  /// as a wait that began with the sleep.
  private static func began(_ waits: [String]) -> [Int32: Int64] {
    let began = waits.compactMap { text -> (Int32, Int64)? in
      let tokens = text.split(separator: " ")
      guard tokens.count == 2, let thread = Int32(tokens[0]), let time = Int64(tokens[1]) else {
        return nil
      }
      return (thread, time)
    }
    return Dictionary(began, uniquingKeysWith: { first, _ in first })
  }

  /// The bytes before the checksum's line, if the checksum is right.
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

  /// Returns nil if a backslash precedes a character that `escape` doesn't write.
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
