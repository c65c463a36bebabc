import Glibc

/// Pressure stall information: the share of time that tasks wait
/// (Documentation/accounting/psi.rst).
public struct PressureStall: Hashable, Sendable {
  /// The time in which some task waits. In `full`, all tasks that aren't idle wait.
  public var some: Line
  /// The time in which all tasks that aren't idle wait; nil if the kernel doesn't report it.
  public var full: Line?

  public struct Line: Hashable, Sendable {
    /// The share of the last 10 s that was stalled, in percent (0 to 100).
    public var average10: Double
    /// The time stalled since boot (or since the group was made), in microseconds.
    public var totalMicroseconds: UInt64
  }

  public static let systemMemoryPath = "/proc/pressure/memory"

  /// Reads the system's file for memory, or a cgroup's `memory.pressure`.
  public static func read(
    _ path: String = systemMemoryPath
  ) throws(SystemCallError) -> PressureStall {
    guard let stall = PressureStall(parsing: try readRecord(path)) else {
      throw malformed(path)
    }
    return stall
  }

  public static func read(_ record: KernelRecord) throws(SystemCallError) -> PressureStall {
    guard let stall = PressureStall(parsing: try record.read()) else {
      throw malformed(record.path)
    }
    return stall
  }

  public init?(parsing bytes: [UInt8]) {
    guard let some = value(of: "some ", in: bytes).flatMap(Line.init(parsing:)) else { return nil }
    self.some = some
    if let text = value(of: "full ", in: bytes) {
      guard let full = Line(parsing: text) else { return nil }
      self.full = full
    }
  }
}

extension PressureStall.Line {
  /// Parses the values of a line such as `avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
  fileprivate init?(parsing text: ArraySlice<UInt8>) {
    var average: Double?
    var total: UInt64?
    for word in text.words() {
      if word.starts(with: "avg10=".utf8) {
        average = word.dropFirst(6).decimal()
      } else if word.starts(with: "total=".utf8) {
        total = word.dropFirst(6).number()
      }
    }
    guard let average, let total else { return nil }
    self.init(average10: average, totalMicroseconds: total)
  }
}

/// A pressure threshold that the kernel watches. Its descriptor polls `POLLPRI` at most once per
/// window while the stall exceeds the threshold, and `POLLERR` when the cgroup has been removed.
public struct PressureTrigger: Sendable {
  public enum Kind: String, Hashable, Sendable { case some, full }

  public let descriptor: Descriptor

  /// Makes a trigger.
  ///
  /// - Parameters:
  ///   - stall: the threshold: the stalled time within each `window`.
  ///   - window: 500 ms to 10 s. Without CAP_SYS_RESOURCE it must be a multiple of 2 s.
  public init(
    _ kind: Kind = .some, stall: Duration = .milliseconds(200), window: Duration = .seconds(2),
    path: String = PressureStall.systemMemoryPath
  ) throws(PressureTriggerError) {
    do throws(SystemCallError) {
      descriptor = try Descriptor.open(path, O_RDWR | O_NONBLOCK)
      // The kernel overwrites the last byte with the terminating NUL, so the text ends with an
      // extra byte.
      try descriptor.writeAll("\(kind.rawValue) \(stall.microseconds) \(window.microseconds)\0")
    } catch {
      throw PressureTriggerError(cause: error.on(path), window: window)
    }
  }
}

extension Duration {
  var microseconds: Int64 {
    components.seconds &* 1_000_000 &+ components.attoseconds / 1_000_000_000_000
  }
}

/// The reason why the kernel doesn't watch a pressure threshold. Sampling the averages still works.
public struct PressureTriggerError: Error, Hashable, Sendable, CustomStringConvertible {
  public let cause: SystemCallError
  public let window: Duration

  public var description: String {
    let path = cause.subject
    switch cause.code {
    case ENOENT, EOPNOTSUPP:
      return "\(path): this kernel has no pressure stall information "
        + "(CONFIG_PSI, or psi=1 on its command line)"
    case EPERM, EACCES:
      return "\(path): the kernel permits no pressure trigger to this user (\(cause)); it needs "
        + "CAP_SYS_RESOURCE, or a kernel that permits windows that are multiples of 2 s "
        + "to every user"
    case EINVAL:
      return "\(path): the kernel refuses a pressure trigger with a window of \(window); windows "
        + "are 500 ms to 10 s, and multiples of 2 s without CAP_SYS_RESOURCE"
    default:
      return "\(cause)"
    }
  }
}
