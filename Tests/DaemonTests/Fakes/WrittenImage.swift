import Linux
import TestSupport

@testable import Hibernation

extension Scratch {
  /// Writes an image without pages that names these processes.
  @discardableResult
  func writeImage(_ name: String, of processes: [ProcessIdentity]) throws -> String {
    let image = "\(path)/\(name)"
    _ = try ImageWriter(path: image).commit(
      processes: processes.map {
        ImageProcess(pid: $0.pid, startTime: $0.startTime, scratchAddress: 0, threads: [])
      }, durability: .cached)
    return image
  }
}
