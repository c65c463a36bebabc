/// Distinguishes an image from every other one, including older images of the same worker, by its
/// random identity, the checksum of its index, and its length. The mark is kept from commit A on
/// and compared before anything is written back. The file's name proves nothing: the file may have
/// been replaced, or restored from a backup.
public struct ImageMark: Hashable, Sendable {
  let id: ImageID
  let indexChecksum: UInt32
  let fileLength: UInt64

  init(id: ImageID, indexChecksum: UInt32, fileLength: UInt64) {
    self.id = id
    self.indexChecksum = indexChecksum
    self.fileLength = fileLength
  }

  /// The form in a worker's record: four hexadecimal numbers.
  public var text: String {
    [id.halves.0, id.halves.1, UInt64(indexChecksum), fileLength].map { String($0, radix: 16) }
      .joined(separator: "-")
  }

  /// Parses the form of `text`. It is `nil` for any other text.
  public init?(text: String) {
    let fields = text.split(separator: "-", omittingEmptySubsequences: false).compactMap {
      UInt64($0, radix: 16)
    }
    guard fields.count == 4, let checksum = UInt32(exactly: fields[2]) else { return nil }
    self.init(
      id: ImageID(halves: (fields[0], fields[1])), indexChecksum: checksum, fileLength: fields[3])
  }
}

/// What is known about a worker's image before it is opened.
public enum ImageExpectation: Hashable, Sendable {
  /// It isn't known whether the worker is hibernated. If there is an image, it may be an old one.
  /// If the directory is known in which an image would have been made, only an image that is
  /// missing there was removed.
  case unknown(in: ImageDirectory? = nil)
  /// The worker's memory isn't in an image, except for pages of a trim or of a lazy restore. If
  /// there is an image, it may be an old one.
  case awake(in: ImageDirectory? = nil)
  /// The worker's memory is in an image whose mark wasn't recorded.
  case hibernated
  /// The worker's memory is in this image, and in no other one. The image was made in this
  /// directory, if that is known.
  case image(ImageMark, in: ImageDirectory? = nil)
}

extension ImageReader {
  /// A description of exactly this file, which has been checked already.
  var asRestingImage: RestingImage {
    RestingImage(path: path, expecting: .image(of: mark, at: path))
  }

  /// The mark of this image. It is `nil` for an image without an identity (section 8 may be left
  /// out).
  var mark: ImageMark? {
    id.map { ImageMark(id: $0, indexChecksum: indexChecksum, fileLength: fileLength) }
  }

  /// Checks that this is the image that a worker's memory is in.
  ///
  /// - Throws: `unverifiable`. The worker's memory is then lost, as with a damaged image.
  func check(
    isOf target: HibernationTarget, _ expectation: ImageExpectation
  ) throws(HibernationError) {
    if let mark = expectation.mark, self.mark != mark {
      throw HibernationError(
        .reading,
        "the image \(path) is not the one that was made when the worker was hibernated: "
          + "it was replaced", aftermath: .unverifiable)
    }
    if target.root.life == .lives, !processes.contains(where: { $0.identity == target.root }) {
      throw HibernationError(
        .reading,
        "the image \(path) belongs to another worker: process \(target.root.pid) is not in it",
        aftermath: .unverifiable)
    }
  }
}
