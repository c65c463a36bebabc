import Glibc
import Linux

/// The environment that this process was started with.
public struct ProcessEnvironment: Hashable, Sendable {
  public var variables: [String: String] = [:]
  /// Names of variables whose value isn't UTF-8. JSON can't carry those, and a repaired value
  /// would be a wrong one.
  public var unusable: [String] = []

  /// From `/proc/self/environ`, and not from `environ`: that is a mutable global, which Swift 6
  /// rightly refuses.
  public static func current() -> ProcessEnvironment {
    ProcessEnvironment(block: (try? readWholeFile("/proc/self/environ")) ?? [])
  }

  /// `NAME=VALUE` entries, each ended by NUL.
  init(block: [UInt8]) {
    for entry in block.split(separator: 0) {
      guard let equals = entry.firstIndex(of: UInt8(ascii: "=")), equals > entry.startIndex else {
        continue
      }
      let name = String(decoding: entry[..<equals], as: UTF8.self)
      if let name = String(validating: entry[..<equals], as: UTF8.self),
        let value = String(validating: entry[(equals + 1)...], as: UTF8.self)
      {
        // As getenv does it, the first of two entries of the same name counts.
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
  /// As in errno(3).
  public var code: Int32

  public init(operation: String, path: String, code: Int32) {
    self.operation = operation
    self.path = path
    self.code = code
  }

  public var description: String {
    "\(operation) \(escaped(path)) failed: \(errorText(code))"
  }
}

func readWholeFile(_ path: String) throws(FileError) -> [UInt8] {
  do throws(SystemCallError) { return try readFile(path) } catch {
    let operation = error.call == "open" ? "opening" : "reading"
    throw FileError(operation: operation, path: path, code: error.code)
  }
}

extension FileError {
  /// Names the operation that a system call has failed in.
  package static func wrap<Value>(
    _ operation: String, on path: String, _ body: () throws(SystemCallError) -> Value
  ) throws(FileError) -> Value {
    do throws(SystemCallError) { return try body() } catch {
      throw FileError(operation: operation, path: path, code: error.code)
    }
  }
}

/// Why a system call has failed; `nil`: it hasn't.
func failureCode(_ name: String, _ body: () -> Int32) -> Int32? {
  do throws(SystemCallError) {
    _ = try systemCall(name, body)
    return nil
  } catch { return error.code }
}
