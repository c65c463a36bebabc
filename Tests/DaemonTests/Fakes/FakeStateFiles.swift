@testable import Daemon

/// A disk that responds when a test says so.
final class FakeStateFiles: StateFileWriter {
  private(set) var texts: [String: String] = [:]
  private var waiting: [(String?) -> Void] = []

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    texts[path] = text
    waiting.append(then)
  }

  /// Reports that all files are on the disk, or that none could be written for this reason.
  func answer(_ failure: String? = nil) {
    let all = waiting
    waiting = []
    for then in all { then(failure) }
  }
}
