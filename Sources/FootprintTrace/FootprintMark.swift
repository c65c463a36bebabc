import JSONLines

/// An event that occurred while a footprint was recorded.
public struct FootprintMark: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// The worker changed its state.
    case state
    /// The worker was asked to free memory.
    case warning
    /// How much memory a warning freed, measured by the daemon.
    case returned
    /// The worker freed memory by itself when it entered the background.
    case shed
    /// The worker's purgeable memory was freed.
    case purge
    case failed
    /// The machine's pressure level has changed.
    case pressure
    /// Workers were terminated for lack of memory.
    case jetsam
    /// Any other mark, or one of a kind that only a newer version has.
    case note
    /// Events are missing here: the recorder didn't receive them.
    case lost
  }

  /// Seconds since the recording began.
  public var at: Double
  public var kind: Kind
  /// One sentence. It may contain any characters: use `sentence` for a terminal.
  public var text: String
  /// The states before and after, for a mark of kind `state`.
  public var from: String?
  public var to: String?
  /// The duration of the event in seconds.
  public var seconds: Double?
  /// Freed memory in bytes.
  public var freed: Int64?
}

extension FootprintMark {
  /// The line of the mark in a file.
  public var json: JSON {
    var members: [JSON.Member] = [
      .init("t", .seconds(at)), .init("mark", .string(kind.rawValue)),
    ]
    if let from { members.append(.init("from", .string(from))) }
    if let to { members.append(.init("to", .string(to))) }
    if let seconds { members.append(.init("seconds", .seconds(seconds))) }
    if let freed { members.append(.init("freed", .int(freed))) }
    members.append(.init("text", .string(text)))
    return .object(members)
  }

  init(_ json: JSON, kind: String, at: Double) throws(RecordingFault) {
    self.init(
      at: at, kind: Kind(rawValue: kind) ?? .note, text: json["text"]?.text ?? kind,
      from: json["from"]?.text, to: json["to"]?.text, seconds: json["seconds"]?.number,
      freed: try json.bytes("freed"))
  }
}

/// The end of a recording, and its reason.
public struct RecordingEnd: Hashable, Sendable {
  public enum Reason: String, Hashable, Sendable {
    /// The requested time has passed.
    case time
    /// The operator ended it (Ctrl-C).
    case interrupted
    /// The program has ended.
    case exited
    /// The daemon has ended, or it doesn't know the worker any more.
    case gone
    /// The recording failed, for example because the footprint couldn't be measured.
    case failed
  }

  /// Seconds since the recording began.
  public var at: Double
  public var reason: Reason
  /// The exit code of a program that was started for the recording.
  public var code: Int32?
  /// The signal that ended the program, if a signal did.
  public var signal: Int32?
}

extension RecordingEnd {
  /// The line of the end in a file.
  public var json: JSON {
    var members: [JSON.Member] = [
      .init("t", .seconds(at)), .init("end", .string(reason.rawValue)),
    ]
    if let code { members.append(.init("code", .int(Int64(code)))) }
    if let signal { members.append(.init("signal", .int(Int64(signal)))) }
    return .object(members)
  }

  init(_ json: JSON, reason: String, at: Double) {
    self.init(
      at: at, reason: Reason(rawValue: reason) ?? .failed,
      code: json["code"]?.integer.map { Int32(clamping: $0) },
      signal: json["signal"]?.integer.map { Int32(clamping: $0) })
  }
}
