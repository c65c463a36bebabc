import JSONLines

/// The error of a file that isn't a footprint recording, or that is damaged.
public struct RecordingError: Error, Hashable, Sendable, CustomStringConvertible {
  public var file: String
  /// The number of the line, from 1. nil: the file as a whole.
  public var line: Int?
  /// The problem, in words.
  public var what: String

  public var description: String { "\(file):\(line.map { "\($0):" } ?? "") \(what)" }
}

/// Reads a recording piece by piece, from any source. A fault is an error that names the line. An
/// incomplete last line is no error, because `kill -9` and full disks leave one.
public struct RecordingReader: Sendable {
  /// The maximum length of a line in bytes. Most lines have a few hundred; a command may be long.
  static let maxLine = 4 << 20
  /// The maximum time of a line: ten years in seconds. A larger value is damage.
  static let latest = 315_360_000.0

  private let file: String
  private var remainder: [UInt8] = []
  private var line = 0
  private var header: RecordingHeader?
  private var samples: [FootprintSample] = []
  private var marks: [FootprintMark] = []
  private var end: RecordingEnd?

  public init(file: String) { self.file = file }

  /// Adds the next bytes of the file. The pieces may have any size.
  public mutating func feed(_ bytes: [UInt8]) throws(RecordingError) {
    var pieces = bytes.split(
      separator: UInt8(ascii: "\n"), maxSplits: Int.max, omittingEmptySubsequences: false)
    let open = pieces.removeLast()
    for piece in pieces {
      try read(remainder + piece)
      remainder = []
    }
    remainder += open
    guard remainder.count <= Self.maxLine else {
      throw RecordingError(file: file, line: line + 1, what: "this line has no end")
    }
  }

  /// Returns the recording. Call this after the whole file was fed.
  public mutating func finish() throws(RecordingError) -> Recording {
    let last = remainder
    remainder = []
    var isCut = false
    if !last.isEmpty {
      // A complete last line without its newline is valid; an incomplete one was cut.
      if JSON(last) != nil { try read(last) } else { isCut = true }
    }
    guard let header else {
      let what = isCut ? "not a footprint recording" : "the file is empty"
      throw RecordingError(file: file, what: what)
    }
    guard !samples.isEmpty else {
      throw RecordingError(file: file, what: "no samples: nothing was measured")
    }
    var recording = Recording(header: header, samples: samples, marks: marks, end: end)
    recording.lostItsTail = isCut
    return recording
  }

  private mutating func read(_ bytes: [UInt8]) throws(RecordingError) {
    line += 1
    let text = bytes.last == UInt8(ascii: "\r") ? Array(bytes.dropLast()) : bytes
    if text.isEmpty { return }
    do throws(RecordingFault) {
      guard let json = JSON(text), case .object = json else {
        throw RecordingFault(
          header == nil
            ? "not a footprint recording (`dormouse footprint record` makes one)"
            : "this line is not a JSON object")
      }
      try parse(json)
    } catch {
      throw RecordingError(file: file, line: line, what: error.what)
    }
  }

  private mutating func parse(_ json: JSON) throws(RecordingFault) {
    guard header != nil else { return header = try RecordingHeader(json) }
    guard let at = json["t"]?.number, (0...Self.latest).contains(at) else {
      throw RecordingFault("`t` is not a time in seconds since the start")
    }
    if let kind = json["mark"]?.text {
      marks.append(try FootprintMark(json, kind: kind, at: at))
    } else if let reason = json["end"]?.text {
      end = RecordingEnd(json, reason: reason, at: at)
    } else if json["footprint"] != nil || json["anonymous"] != nil {
      if let last = samples.last, at < last.at {
        throw RecordingFault("this sample is older than the one before it")
      }
      samples.append(try FootprintSample(json, at: at))
    }
    // Lines of any other kind come from a newer version and are ignored.
  }
}
