import Hibernation

/// A worker's image: where all of its memory is while it is hibernated.
struct ImageOnDisk: Sendable {
  var resting: RestingImage
  /// Bytes on the disk; nil where nothing has noted it.
  var length: Int64?

  var path: String { resting.path }
  /// Distinguishes it from other images; nil where that isn't noted.
  var mark: ImageMark? { resting.expectation.mark }

  init(_ resting: RestingImage, length: Int64?) {
    self.resting = resting
    self.length = length
  }

  /// - Parameter mark: nil where it isn't noted.
  init(path: String, mark: ImageMark? = nil, length: Int64? = nil) {
    self.init(RestingImage(path: path, expecting: .of(mark)), length: length)
  }
}

/// Where a worker's memory is, and so how it can be resumed: decided when it is put to rest, or found at rest,
/// and kept.
enum RestState: Sendable {
  /// All of its memory is in its processes. `mayBeStopped`: a hibernation was tried since it was suspended, which
  /// stops it by signal for a while.
  case thaw(mayBeStopped: Bool)
  /// Its memory is restored from this image, as the image's own plan says.
  case image(ImageOnDisk)
  /// An earlier daemon put it to rest, or its wake failed half-way: its memory is verified before it runs. nil:
  /// it is not known to have an image.
  case recover(ImageOnDisk?)
  /// Its memory can't be verified. It never runs again.
  case unverified

  var image: ImageOnDisk? {
    switch self {
    case .image(let image): image
    case .recover(let image): image
    case .thaw, .unverified: nil
    }
  }

  /// The same, of a worker whose image turned out not to be there.
  var withoutImage: RestState {
    switch self {
    case .image, .thaw: .thaw(mayBeStopped: true)
    case .recover: .recover(nil)
    case .unverified: .unverified
    }
  }
}
