import Control
import Linux

/// The reason why a file isn't read or changed.
public enum FileProblem: Error, Hashable, Sendable {
  case unreadable(SystemCallError)
  case notRegular, tooLarge
  case syntax(line: Int, column: Int, reason: String)
  case owner(UInt32)
  case readOnly
  /// The file has other names (hard links). A new file in its place would have only one.
  case hardLinks(Int)
  case changedMeanwhile
  case failed(SystemCallError)
  case backup(String)
  /// The changed file would mean something else. This is a defect in Dormouse.
  case otherMeaning

  public var code: String {
    switch self {
    case .unreadable: "unreadable"
    case .notRegular: "not_a_file"
    case .tooLarge: "too_large"
    case .syntax: "unparsable"
    case .owner: "other_owner"
    case .readOnly: "read_only"
    case .hardLinks: "hard_links"
    case .changedMeanwhile: "changed_meanwhile"
    case .failed: "failed"
    case .backup: "no_backup"
    case .otherMeaning: "defect"
    }
  }

  public var exit: CommandExit {
    switch self {
    case .syntax: .badConfiguration
    case .otherMeaning: .internalError
    default: .notDone
    }
  }

  /// The text about the file, without its path, escaped.
  public var text: String {
    switch self {
    case .unreadable(let error): "can't be read: \(error.reason)"
    case .notRegular: "is no regular file"
    case .tooLarge: "is larger than 64 MiB"
    case .syntax(_, _, let reason): escaped(reason)
    case .owner(let owner): "belongs to user \(owner): run `dormouse integrate` as that user"
    case .readOnly: "is read-only: `chmod u+w` it first, if no other program manages it"
    case .hardLinks(let count):
      "has \(count) names (hard links), and only this one would be changed: edit it by hand"
    case .changedMeanwhile: "was changed by another program at the same time: try again"
    case .failed(let error): "can't be replaced: \(escaped(error.description))"
    case .backup(let reason):
      "isn't changed, because a copy of it can't be kept: \(escaped(reason))"
    case .otherMeaning: "would mean something else after the change; please report this defect"
    }
  }

  /// The sentence for standard error. It begins with `file:line:column` if the problem is at one
  /// position in the file.
  public func sentence(_ path: String) -> String {
    switch self {
    case .syntax(let line, let column, _): "\(escaped(path)):\(line):\(column): \(text)"
    default: "\(escaped(path)) \(text)"
    }
  }
}
