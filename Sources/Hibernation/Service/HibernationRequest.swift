/// What a hibernation has to do. The same request is passed to `HibernationService` and `Hibernator`.
public struct HibernationRequest: Sendable {
  /// The worker. It is suspended (frozen or stopped).
  public var target: HibernationTarget
  /// The path of the image. Its directory exists.
  public var path: String
  /// zstd's compression level, −7…19.
  public var level: Int32
  /// The way of resuming for which the image is laid out. The summary's image says what was chosen
  /// (`RestingImage.restore`): for example, an encrypted image is always restored in full.
  public var restore: ResumePreference
  /// Writes only the pages that have changed, if an earlier resume has kept a base, and prepares for the next
  /// overlay. Not together with `isSealed`.
  public var overlay: Bool
  /// Encrypts the image (`Seal`). Without a key no image is written.
  public var isSealed: Bool
  /// Also pushes out clean pages of files that no other process uses.
  public var dropsFilePages: Bool
  public var storage: ImageStorage
  /// Called on the hibernation's thread before anything is done, with false, and before the image gets its name, with true:
  /// then it may wait. If it returns a reason, the hibernation fails, and the worker rests as before.
  public var obstacle: @Sendable (_ waits: Bool) -> String? = { _ in nil }

  public init(
    _ target: HibernationTarget, to path: String, level: Int32 = 1,
    restore: ResumePreference = .eager, overlay: Bool = false, isSealed: Bool = false,
    dropsFilePages: Bool = false, storage: ImageStorage = ImageStorage()
  ) {
    self.target = target
    self.path = path
    self.level = level
    self.restore = restore
    self.overlay = overlay
    self.isSealed = isSealed
    self.dropsFilePages = dropsFilePages
    self.storage = storage
  }
}

/// How an image is kept.
public struct ImageStorage: Sendable {
  public var durability: ImageDurability
  /// Memory is short: drops the image's pages from the page cache when they are on the disk.
  public var dropsCache: Bool

  public init(durability: ImageDurability = .synced, dropsCache: Bool = false) {
    self.durability = durability
    self.dropsCache = dropsCache
  }
}

/// What a hibernation did. Sizes in bytes.
public struct HibernationSummary: Sendable {
  /// The image that has the worker's memory, and how it will be restored. `resume` needs it.
  public var image: RestingImage
  /// Private pages that left memory.
  public var moved: UInt64
  public var imageLength: UInt64
  /// Bytes of these that were written now; the rest is in the base.
  public var written: UInt64
  /// Pages that were found unchanged in the base.
  public var unchanged: UInt64 = 0
  /// Pages that were compared: it wasn't known whether they had been written to, or they had been, perhaps with what was
  /// there before.
  public var compared: UInt64 = 0
  /// Why writes aren't tracked although `overlay` was set.
  public var trackingRefusal: String?
  public var processes: Int
  /// Why the worker can't be restored lazily although that was planned.
  public var lazyRefusal: String?
  /// `nil`: not asked for.
  public var filePages: FilePages.Outcome?
  public var duration: Duration
}
