import Linux

/// The environment that this process was started with.
public struct ProcessEnvironment: Hashable, Sendable {
  public var variables: [String: String] = [:]
  /// The names of variables whose value isn't UTF-8. JSON can't contain such a value, and a
  /// repaired one would be wrong.
  public var unusable: [String] = []

  /// The environment from `/proc/self/environ`. The global `environ` isn't used: it is mutable,
  /// which Swift 6 rightly refuses. The environment is empty if the file can't be read.
  public static func current() -> ProcessEnvironment {
    ProcessEnvironment(block: (try? readFile("/proc/self/environ")) ?? [])
  }

  /// - Parameter block: `NAME=VALUE` entries, each ended by NUL.
  init(block: [UInt8]) {
    for entry in block.split(separator: 0) {
      guard let equals = entry.firstIndex(of: UInt8(ascii: "=")), equals > entry.startIndex else {
        continue
      }
      let name = String(decoding: entry[..<equals], as: UTF8.self)
      if let name = String(validating: entry[..<equals], as: UTF8.self),
        let value = String(validating: entry[(equals + 1)...], as: UTF8.self)
      {
        // The first of two entries with the same name counts, as in getenv(3).
        if variables[name] == nil { variables[name] = value }
      } else {
        unusable.append(name)
      }
    }
  }
}

/// A system call on a file failed.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
  public var operation: String
  public var path: String
  /// The error number, as in errno(3).
  public var code: Int32

  public init(operation: String, path: String, code: Int32) {
    self.operation = operation
    self.path = path
    self.code = code
  }

  public var description: String {
    "\(operation) \(escaped(path)) failed: \(errorText(code))"
  }

  /// Converts an error of a system call, and adds the operation that failed.
  package static func wrap<Value>(
    _ operation: String, on path: String, _ body: () throws(SystemCallError) -> Value
  ) throws(FileError) -> Value {
    do throws(SystemCallError) { return try body() } catch {
      throw FileError(operation: operation, path: path, code: error.code)
    }
  }
}
