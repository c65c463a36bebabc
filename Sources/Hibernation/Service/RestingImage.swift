/// The image that a hibernated worker's memory is in.
public struct RestingImage: Hashable, Sendable {
  public var path: String
  /// What is known about the image. It is compared with the file before anything is written back.
  public var expectation: ImageExpectation
  /// How the memory will be restored.
  public var restore: RestorePlan

  public init(
    path: String, expecting expectation: ImageExpectation = .hibernated,
    restore: RestorePlan = RestorePlan(.eager)
  ) {
    self.path = path
    self.expectation = expectation
    self.restore = restore
  }

  /// Describes an image with the restore mode that the caller chooses.
  public init(path: String, _ mode: RestoreMode) {
    self.init(path: path, restore: RestorePlan(mode))
  }

  /// Returns the same image with another way of restoring than was planned.
  public func restored(_ mode: RestoreMode) -> RestingImage {
    RestingImage(path: path, expecting: expectation, restore: RestorePlan(mode))
  }
}

/// How a worker gets its memory back from an image. This is decided when the worker is hibernated,
/// because the image's layout depends on it.
public struct RestorePlan: Hashable, Sendable {
  public var mode: RestoreMode
  /// The reason for the mode. It is empty if the caller has chosen the mode.
  public var reason: String

  public var isLazy: Bool { mode != .eager }

  public init(_ mode: RestoreMode) { (self.mode, reason) = (mode, "") }
  init(lazy reason: String) { (mode, self.reason) = (.lazy(learns: true), reason) }
  init(eager reason: String) { (mode, self.reason) = (.eager, reason) }
}

extension ImageExpectation {
  /// The expectation for an image that is at this path now.
  static func image(of mark: ImageMark?, at path: String) -> ImageExpectation {
    mark.map { .image($0, in: ImageDirectory(of: path)) } ?? .hibernated
  }

  /// The image's mark, if it is known.
  public var mark: ImageMark? { if case .image(let mark, _) = self { mark } else { nil } }
  /// The directory in which the image was made, if it is known.
  public var directory: ImageDirectory? {
    switch self {
    case .unknown(let directory), .awake(let directory), .image(_, let directory): directory
    case .hibernated: nil
    }
  }
  /// True if the worker's memory is certainly in an image.
  public var isOfHibernated: Bool {
    switch self {
    case .unknown, .awake: false
    case .hibernated, .image: true
    }
  }
}
