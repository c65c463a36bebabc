/// A fault of a trace, and its location.
public struct TraceError: Error, Equatable, CustomStringConvertible {
  public var file: String
  /// The number of the line, from 1. 0: the file as a whole.
  public var line: Int = 0
  /// The offset in the line in bytes, from 1. 0: the line as a whole.
  public var column: Int = 0
  public var what: String

  public var description: String {
    var location = file
    if line > 0 { location += ":\(line)" }
    if column > 0 { location += ":\(column)" }
    return "\(location): \(what)"
  }
}
