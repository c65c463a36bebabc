import Glibc

/// A file of /proc or of a cgroup that is one record and is read again and again. It stays open,
/// which saves the path lookup at each read. Each read returns the values of that moment.
public struct KernelRecord: Sendable {
  public let path: String
  private let descriptor: Descriptor

  public init(_ path: String) throws(SystemCallError) {
    self.path = path
    descriptor = try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
  }

  public func read() throws(SystemCallError) -> [UInt8] {
    let bytes = try descriptor.readBytes(upTo: largestRecord, at: 0, path: path)
    return bytes.count < largestRecord ? bytes : try readFile(path)
  }
}
