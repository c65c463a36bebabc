import Control
import PolicyFile
import Glibc
import Linux

/// This process's working directory.
func currentDirectory() throws(FileError) -> String {
  var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
  // getcwd(3) returns its argument, or NULL.
  let result = kernelResult { getcwd(&buffer, buffer.count) == nil ? Int32(-1) : 0 }
  try check("finding", on: "the working directory", result: result)
  return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Throws what `kernelResult` or a shim answered, if it is an error; else it returns the result.
@discardableResult
func check<Result: SignedInteger>(
  _ operation: String, on path: String, result: Result
) throws(FileError) -> Result {
  if result >= 0 { return result }
  throw FileError(operation: operation, path: path, code: Int32(-result))
}

/// Writes all of it.
func writeAll(
  _ bytes: some Sequence<UInt8>, to file: Int32, _ operation: String = "writing", path: String
) throws(FileError) {
  var rest = Array(bytes)[...]
  while !rest.isEmpty {
    let count = kernelResult {
      rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
    }
    if count == -Int(EINTR) { continue }
    rest = rest.dropFirst(try check(operation, on: path, result: count))
  }
}

/// Reads the available bytes, at most as many as fit; 0 at the end.
func readSome(_ buffer: inout [UInt8], from file: Int32, path: String) throws(FileError) -> Int {
  while true {
    let count = kernelResult {
      buffer.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
    }
    if count != -Int(EINTR) { return try check("reading", on: path, result: count) }
  }
}

/// A policy's path as the daemon finds it, whose directory is another one. A name stays as it is.
func policyForDaemon(_ policy: String) -> String {
  // Without a directory the daemon complains about the policy.
  guard PolicyLibrary.isPath(policy), let here = try? currentDirectory() else { return policy }
  return absolutePath(policy, in: here)
}
