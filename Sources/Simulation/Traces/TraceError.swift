/// A fault of a trace, and its location.
public struct TraceError: Error, Equatable, CustomStringConvertible {
  public var file: String
  /// The number of the line, from 1. 0: the file as a whole.
  public var line: Int
  /// The offset in the line in bytes, from 1. 0: the line as a whole.
  public var column: Int
  public var what: String

  public init(file: String, line: Int = 0, column: Int = 0, what: String) {
    self.file = file
    self.line = line
    self.column = column
    self.what = what
  }

  public var description: String {
    var location = file
    if line > 0 { location += ":\(line)" }
    if column > 0 { location += ":\(column)" }
    return "\(location): \(what)"
  }
}
