/// How a worker that rests is made to run again. Decided when it is put to rest; what has put it there keeps
/// it until the worker runs.
public enum RestPlan: Hashable, Sendable {
  /// Its memory is in place.
  ///
  /// - Parameter mayBeStopped: a hibernation was tried since it was suspended, which stops processes by
  ///   signal. False: only the freezer holds it (where it has one).
  case thaw(mayBeStopped: Bool)
  /// Its memory is in an image.
  case image(RestingImage)
  /// An earlier daemon has put it to rest, or waking it has failed half-way: where its memory is has to be
  /// proven first.
  ///
  /// - Parameter path: where its image is, if it has one.
  case recover(path: String, expecting: ImageExpectation)

  /// The image that its memory is in, as far as that is known.
  public var imagePath: String? {
    switch self {
    case .thaw, .recover(_, .unknown): nil
    case .image(let image): image.path
    case .recover(let path, _): path
    }
  }

  /// Tells that image from others; `nil`: not known.
  public var imageMark: ImageMark? {
    switch self {
    case .thaw: nil
    case .image(let image): image.expectation.mark
    case .recover(_, let expectation): expectation.mark
    }
  }

  /// There is an image at `path`, and that the worker rests on it has to be proven first.
  public func recovering(from path: String) -> RestPlan {
    .recover(path: path, expecting: imageMark.map { .image($0) } ?? .hibernated)
  }

  /// It has turned out that the worker's memory is in place.
  public mutating func hasNoImage() {
    switch self {
    case .thaw: break
    case .image: self = .thaw(mayBeStopped: true)
    case .recover(let path, _): self = .recover(path: path, expecting: .unknown)
    }
  }

  /// A hibernation begins, and stops it by signal.
  public mutating func mayStop() {
    if case .thaw = self { self = .thaw(mayBeStopped: true) }
  }
}

/// The image that a hibernated worker's memory is in.
public struct RestingImage: Hashable, Sendable {
  public var path: String
  /// Compared with the file before anything is written back.
  public var expectation: ImageExpectation
  public var restore: RestorePlan

  public init(
    path: String, expecting expectation: ImageExpectation = .hibernated,
    restore: RestorePlan = RestorePlan(.eager)
  ) {
    self.path = path
    self.expectation = expectation
    self.restore = restore
  }

  /// As the caller wants it restored.
  public init(path: String, _ mode: RestoreMode) {
    self.init(path: path, restore: RestorePlan(mode))
  }

  /// The same image, restored in another way than was planned.
  public func restored(_ mode: RestoreMode) -> RestingImage {
    RestingImage(path: path, expecting: expectation, restore: RestorePlan(mode))
  }
}

/// How a worker gets its memory back from an image. Decided when it is hibernated, for the image is laid out
/// for it.
public struct RestorePlan: Hashable, Sendable {
  public var mode: RestoreMode
  /// Why; empty: the caller wants it so.
  public var reason: String

  public var isLazy: Bool { mode != .eager }

  public init(_ mode: RestoreMode) { (self.mode, reason) = (mode, "") }
  init(lazy reason: String) { (mode, self.reason) = (.lazy(learns: true), reason) }
  init(eager reason: String) { (mode, self.reason) = (.eager, reason) }
}

extension ImageExpectation {
  var mark: ImageMark? { if case .image(let mark) = self { mark } else { nil } }
}
