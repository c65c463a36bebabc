/// What a hibernation is to do: the whole of it, through `HibernationService` and `Hibernator` alike.
public struct HibernationRequest: Sendable {
  /// The worker, which is suspended (frozen or stopped).
  public var target: HibernationTarget
  /// Where the image goes; its directory exists.
  public var path: String
  /// zstd's, −7…19.
  public var level: Int32
  /// For which way of resuming the image is laid out. What becomes of it, the summary's image says
  /// (`RestingImage.restore`): an encrypted image, for one, is always restored in full.
  public var restore: ResumePreference
  /// Writes only what has changed, where an earlier resume has kept a base, and prepares for that next
  /// time. Not together with a lazy restore (a mapping has one userfaultfd) or `isSealed`.
  public var overlay: Bool
  /// Encrypts the image (`Seal`). Without a key it isn't written at all.
  public var isSealed: Bool
  /// Pushes out clean pages of files, too, which no other process has in use.
  public var dropsFilePages: Bool
  public var storage: ImageStorage

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
  /// Memory is short: what is on the disk needn't be in the page cache too.
  public var dropsCache: Bool

  public init(durability: ImageDurability = .synced, dropsCache: Bool = false) {
    self.durability = durability
    self.dropsCache = dropsCache
  }
}

/// What a hibernation did. Sizes in bytes.
public struct HibernationSummary: Sendable {
  /// What the worker's memory is in now, and how it is to be brought back: for `resume`.
  public var image: RestingImage
  /// Private pages that left memory.
  public var moved: UInt64
  public var imageLength: UInt64
  /// What of that was written now; the rest is its base.
  public var written: UInt64
  /// Pages that were found unchanged in the base.
  public var unchanged: UInt64 = 0
  /// Pages that had to be compared for that, because nothing was known of writes to them.
  public var compared: UInt64 = 0
  /// Why writes aren't tracked although that was asked for.
  public var trackingRefusal: String?
  public var processes: Int
  /// Why it can't be restored lazily although that was planned.
  public var lazyRefusal: String?
  /// `nil`: not asked for.
  public var filePages: FilePages.Outcome?
  public var duration: Duration
}
