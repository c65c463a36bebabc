import Foundation
import Testing

/// A directory of its own for a test, which is removed with this object.
final class Scratch: Sendable {
  let path: String

  init() throws {
    var template = Array("/tmp/dormouse-dashboard.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("mkdtemp: errno \(errno)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // A directory that can't be removed stays in /tmp.
    try? FileManager.default.removeItem(atPath: path)
  }
}

struct Failure: Error, CustomStringConvertible {
  var description: String
  init(_ text: String) { description = text }
}

/// Calls `body` until it is true, for at most `limit`.
func eventually(_ limit: Duration = .seconds(90), _ body: () throws -> Bool) throws -> Bool {
  let deadline = ContinuousClock.now + limit
  repeat {
    if try body() { return true }
    usleep(50_000)
  } while ContinuousClock.now < deadline
  return false
}
