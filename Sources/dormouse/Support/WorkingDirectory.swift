import Control
import PolicyFile
import Glibc
import Linux

/// Returns this process's working directory.
func currentDirectory() throws(FileError) -> String {
  var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
  // getcwd(3) returns its argument, or NULL.
  let result = kernelResult { getcwd(&buffer, buffer.count) == nil ? Int32(-1) : 0 }
  try check("finding", on: "the working directory", result: result)
  return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Returns the result of `kernelResult` or of a shim. If the result is an error, it is thrown.
@discardableResult
func check<Result: SignedInteger>(
  _ operation: String, on path: String, result: Result
) throws(FileError) -> Result {
  if result >= 0 { return result }
  throw FileError(operation: operation, path: path, code: Int32(-result))
}

/// Writes all bytes.
func writeAll(
  _ bytes: some Sequence<UInt8>, to file: Int32, _ operation: String = "writing", path: String
) throws(FileError) {
  var remaining = Array(bytes)[...]
  while !remaining.isEmpty {
    let count = kernelResult {
      remaining.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
    }
    if count == -Int(EINTR) { continue }
    remaining = remaining.dropFirst(try check(operation, on: path, result: count))
  }
}

/// Reads the available bytes, at most `maximum`. The result is empty at the end of the file.
func readSome(
  _ file: Descriptor, upTo maximum: Int, path: String
) throws(FileError) -> [UInt8] {
  try FileError.wrap("reading", on: path) { () throws(SystemCallError) in
    try file.read(upTo: maximum)
  }
}

/// Returns a policy's path as the daemon needs it, whose working directory is another one. A name
/// stays as it is.
func policyForDaemon(_ policy: String) -> String {
  // If this process has no working directory, the daemon reports the policy's path.
  guard PolicyLibrary.isPath(policy), let here = try? currentDirectory() else { return policy }
  return absolutePath(policy, in: here)
}
