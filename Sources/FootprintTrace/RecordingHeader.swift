import JSONLines

/// A recording's first line: the subject and the machine.
public struct RecordingHeader: Hashable, Sendable {
  public enum Subject: String, Hashable, Sendable {
    /// A daemon's worker, by name. It may be another process each time it is launched.
    case worker
    /// A process that was already running, and its descendants.
    case process
    /// A program that was started for the recording, and its descendants.
    case command
  }

  /// Facts about the machine that footprints depend on.
  public struct Host: Hashable, Sendable {
    /// The kernel's release, as `uname -r` shows it.
    public var kernel: String
    public var cores: Int
    /// The machine's memory in bytes.
    public var memory: Int64
    /// The page size in bytes.
    public var page: Int64
    /// The free swap in bytes when the recording began.
    public var swap: Int64
  }

  public var subject: Subject
  /// The worker's or the program's name. It may contain any characters.
  public var name: String
  /// The process ID when the recording began.
  public var pid: Int32?
  /// The program and its arguments. It is empty if the process hides them.
  public var command: [String] = []
  /// The worker's state when the recording began.
  public var state: String?
  /// The requested interval between samples in seconds.
  public var every: Double
  /// The wall clock when the recording began: ISO 8601, UTC.
  public var time: String
  /// The version of the program that recorded.
  public var version: String
  public var host: Host?
}

extension RecordingHeader {
  /// The value of the member `recording`, which identifies the file format.
  static let magic = "dormouse footprint"
  /// The format that this version writes. It reads all formats from 1 on.
  static let format: Int64 = 1

  /// The first line of a file.
  public var json: JSON {
    var members: [JSON.Member] = [
      .init("recording", .string(Self.magic)), .init("format", .int(Self.format)),
      .init("version", .string(version)), .init("time", .string(time)),
      .init("subject", .string(subject.rawValue)), .init("name", .string(name)),
    ]
    if let pid { members.append(.init("pid", .int(Int64(pid)))) }
    members.append(.init("command", .array(command.map(JSON.string))))
    if let state { members.append(.init("state", .string(state))) }
    members.append(.init("every", .seconds(every)))
    if let host {
      members.append(
        .init(
          "host",
          .object([
            .init("kernel", .string(host.kernel)), .init("cores", .int(Int64(host.cores))),
            .init("memory", .int(host.memory)), .init("page", .int(host.page)),
            .init("swap", .int(host.swap)),
          ])))
    }
    return .object(members)
  }

  init(_ json: JSON) throws(RecordingFault) {
    guard json["recording"]?.text == Self.magic, let format = json["format"]?.integer else {
      throw RecordingFault(
        "this is no footprint recording, whose first line begins with "
          + "{\"recording\":\"\(Self.magic)\"")
    }
    guard (1...Self.format).contains(format) else {
      throw RecordingFault(
        "format \(format) is newer than this program, which knows \(Self.format)")
    }
    guard let every = json["every"]?.number, every >= 0, every.isFinite else {
      throw RecordingFault("the header lacks `every`, the seconds between samples")
    }
    self.init(
      subject: json["subject"]?.text.flatMap(Subject.init) ?? .process,
      name: json["name"]?.text ?? "?", pid: json["pid"]?.integer.map { Int32(clamping: $0) },
      command: json["command"]?.elements?.compactMap(\.text) ?? [], state: json["state"]?.text,
      every: every, time: json["time"]?.text ?? "", version: json["version"]?.text ?? "")
    guard let host = json["host"] else { return }
    self.host = Host(
      kernel: host["kernel"]?.text ?? "?", cores: Int(try host.bytes("cores") ?? 1),
      memory: try host.bytes("memory") ?? 0, page: try host.bytes("page") ?? 4096,
      swap: try host.bytes("swap") ?? 0)
  }
}
