/// The parameters of a hibernation. `HibernationService` and `Hibernator` get the same request.
public struct HibernationRequest: Sendable {
  /// The worker. It must be suspended (frozen or stopped).
  public var target: HibernationTarget
  /// The path of the image. Its directory must exist.
  public var path: String
  public var compression: Compression
  /// The way of resuming for which the image is laid out. The summary's image says what was chosen
  /// (`RestingImage.restore`): for example, an encrypted image is always restored in full.
  public var restore: ResumePreference
  /// True writes only the pages that have changed, if an earlier resume has kept a base, and
  /// prepares for the next overlay. It has no effect together with `isSealed`.
  public var overlay: Bool
  /// True encrypts the image (`Seal`). Without a key no image is written.
  public var isSealed: Bool
  /// True drops also clean pages of files that no other process uses.
  public var dropsFilePages: Bool
  /// True leaves the working set in memory, if the worker will be restored lazily.
  public var keepsWorkingSet: Bool
  public var storage: ImageStorage
  /// True if the worker runs on while its pages are missing: they are stored in small chunks.
  var isTrim = false
  /// Set for a trim of a worker that stands still.
  var standstill: Standstill?
  /// Called on the hibernation's thread before anything is done, with false, and before the image
  /// gets its name, with true: then it may wait. If it returns a reason, the hibernation fails, and
  /// the worker stays suspended as before.
  public var obstacle: @Sendable (_ waits: Bool) -> String? = { _ in nil }

  public init(
    _ target: HibernationTarget, to path: String, compression: Compression = .zstd(level: 1),
    restore: ResumePreference = .eager, overlay: Bool = false, isSealed: Bool = false,
    dropsFilePages: Bool = false, keepsWorkingSet: Bool = false,
    storage: ImageStorage = ImageStorage()
  ) {
    self.target = target
    self.path = path
    self.compression = compression
    self.restore = restore
    self.overlay = overlay
    self.isSealed = isSealed
    self.dropsFilePages = dropsFilePages
    self.keepsWorkingSet = keepsWorkingSet
    self.storage = storage
  }
}

/// How an image is stored.
public struct ImageStorage: Sendable {
  public var durability: ImageDurability
  /// True drops the image's pages from the page cache when they are on the disk, for when memory is
  /// short.
  public var dropsCache: Bool

  public init(durability: ImageDurability = .synced, dropsCache: Bool = false) {
    self.durability = durability
    self.dropsCache = dropsCache
  }
}

/// The result of a hibernation. Sizes are in bytes.
public struct HibernationSummary: Sendable {
  /// The image that has the worker's memory, and how it will be restored. `resume` needs it.
  public var image: RestingImage
  /// The private pages that left memory.
  public var moved: UInt64
  /// The length of the image and its base, in bytes.
  public var imageLength: UInt64
  /// The bytes of the image that were written now; the others are in the base.
  public var written: UInt64
  /// The pages that were found unchanged in the base.
  public var unchanged: UInt64 = 0
  /// The pages that were compared: it wasn't known whether they had been written to, or they had
  /// been, perhaps with the same content.
  public var compared: UInt64 = 0
  /// The reason why writes aren't tracked although `overlay` was set.
  public var trackingRefusal: String?
  /// The number of processes that were hibernated.
  public var processes: Int
  /// The reason why the worker can't be restored lazily although that was planned.
  public var lazyRefusal: String?
  /// The result of `dropsFilePages`, if that was set.
  public var filePages: FilePages.Outcome?
  /// The time from the beginning of the hibernation to the rest.
  public var duration: Duration
}
