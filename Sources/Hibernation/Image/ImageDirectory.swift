import Glibc
import Linux

/// The directory in which an image was made. If an image is missing from another directory (one on
/// which its volume isn't mounted yet), it wasn't necessarily removed.
public struct ImageDirectory: Hashable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// The directory in which a file of this path is, or would be. It is `nil` if the directory can't
  /// be examined.
  public init?(of path: String) {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    guard let status = fileStatus(of: parent.isEmpty ? "/" : parent) else { return nil }
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }

  /// The form in a worker's record: the device and the inode as hexadecimal numbers.
  public var text: String { "\(String(device, radix: 16))-\(String(inode, radix: 16))" }

  /// Parses the form of `text`. It is `nil` for any other text.
  public init?(text: String) {
    let fields = text.split(separator: "-", omittingEmptySubsequences: false).compactMap {
      UInt64($0, radix: 16)
    }
    guard fields.count == 2 else { return nil }
    (device, inode) = (fields[0], fields[1])
  }
}

extension ImageExpectation {
  /// True if the directory of `path` isn't the one in which the image was made, as far as that is
  /// known.
  public func isForAnotherDirectory(than path: String) -> Bool {
    directory.map { ImageDirectory(of: path) != $0 } ?? false
  }

  /// Returns the error if a worker can't be resumed because its image is missing.
  ///
  /// - Returns: `nil` if there is a file at `path`, or the worker may have no image. The aftermath
  ///   is `intact` if the directory isn't the one in which the image was made, and `unverifiable`
  ///   if the image was removed.
  public func absence(of path: String) -> HibernationError? {
    if case .awake = self { return nil }
    guard isAbsent(path) else { return nil }
    if isForAnotherDirectory(than: path) {
      return HibernationError(
        .reading,
        "its image \(path) is not there, and neither is the directory in which it was made: its "
          + "file system may not be mounted")
    }
    guard isOfHibernated else { return nil }
    return HibernationError(
      .reading, "its image \(path) does not exist any more", aftermath: .unverifiable)
  }
}
