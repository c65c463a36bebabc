import Glibc
import Linux

/// A worker's last complete image, which stays on disk while the worker runs, so that the next
/// hibernation needn't write unchanged pages. Nothing depends on the base before the next image
/// names it.
struct Base {
  let file: BaseFile
  /// Pages that had the base's content when the worker was resumed.
  var current: [ProcessIdentity: [PageRange]]
  /// The opened base. It stays open while an image names it, so that it can be read even if its
  /// file is renamed or removed.
  var image: ImageReader?

  /// The age after which a base isn't used any more, in nanoseconds: one day. An old base shares
  /// fewer pages with the worker's memory, and keeps secrets on disk for longer.
  static let maxAge: Int64 = 24 * 3600 * 1_000_000_000
  /// If more than this fraction (1 in 3) of the pages has changed, all pages are written again: a
  /// resume reads the overlay in addition to the whole base, and both use disk space.
  static let maxChangeDivisor: UInt64 = 3
}

/// The file that is a base, or will be one after commit B.
struct BaseFile {
  let path: String
  let id: ImageID
  /// When the image was made, in nanoseconds of the monotonic clock.
  let made: Int64
}

/// A process whose writes are tracked.
struct TrackedProcess {
  let tracker: WriteTracker
  /// Mappings that have been registered with the tracker.
  var registered: [PageRange] = []
  /// The registered mappings in which every write since the last resume is visible.
  var armed: [PageRange] = []
  /// The mappings as they were at the last scan, for the next one.
  var memo: MappingMemo?
}

extension Hibernator {
  /// Returns the path of the base. The base may stay on disk beside an image, and without an image
  /// while the worker runs.
  public static func basePath(of image: String) -> String { ImageLayout.basePath(of: image) }

  /// Returns the number of bytes that an image and its base occupy on the disk, or `nil` if there
  /// is no image.
  public static func lengthOnDisk(of image: String) -> Int64? {
    func length(_ path: String) -> Int64? { linkStatus(of: path).map { Int64($0.st_size) } }
    return length(image).map { $0 + (length(basePath(of: image)) ?? 0) }
  }

  /// Returns the base of the worker's next image, opened and checked. `nil` means that all pages
  /// must be written.
  func openBase(of name: String, for path: String) -> ImageReader? {
    guard let base = bases[name], base.file.path == ImageLayout.basePath(of: path) else {
      return nil
    }
    do throws(ImageError) {
      let image = try ImageReader(alone: base.file.path)
      if image.id == base.file.id, image.reference == nil,
        Clocks.monotonic - base.file.made < Base.maxAge
      {
        bases[name]?.image = image
        return image
      }
    } catch {}  // The base may have been removed; a damaged one isn't used.
    dropBase(of: name, for: path)
    return nil
  }

  /// Removes a worker's base. It must not be called while an image names the base.
  func dropBase(of name: String, for path: String) {
    bases[name] = nil
    discardFile(ImageWriter.partialPath(of: ImageLayout.basePath(of: path)))
    if discardFile(ImageLayout.basePath(of: path)) { FaultPoint.baseRemoved.pass() }
  }

  /// Removes the worker's base and stops tracking its writes: nothing of its memory stays on disk
  /// while it runs.
  func dropOverlays(of name: String, for path: String) {
    endTracking(of: name)
    dropBase(of: name, for: path)
  }

  /// Stops tracking the worker's writes.
  ///
  /// A program that is being started at this moment may have a copy of the tracker's descriptor
  /// until it is executed. Until then its mappings would look like those of a worker that handles
  /// its own page faults. So the mappings are released one by one.
  func endTracking(of name: String) {
    for process in (trackers.removeValue(forKey: name) ?? [:]).values {
      for range in process.registered {
        // The mapping may be unmapped by now, or the process may have ended.
        try? process.tracker.unregister(range)
      }
    }
  }

  /// Removes the bases of all workers that aren't hibernated, to free disk space.
  ///
  /// - Parameter outdated: true removes only bases that are too old to be used.
  public func dropIdleBases(outdated: Bool = false) {
    if !outdated { for fill in fills.values { fill.dropBase() } }
    collectFills()
    let oldest = Clocks.monotonic - Base.maxAge
    for (name, base) in bases where !outdated || base.file.made < oldest {
      dropIdleBase(of: name)
    }
  }

  /// Removes a worker's base and stops tracking its writes, unless the worker is hibernated.
  public func dropIdleBase(of name: String) {
    fills[name]?.dropBase()
    collectFills()
    guard let base = bases[name], base.image == nil else { return }
    bases[name] = nil
    endTracking(of: name)
    if discardFile(base.file.path) { FaultPoint.baseRemoved.pass() }
  }

  /// Commit B: removes the image. From here on the worker's memory is what counts.
  ///
  /// An image that can't be removed (its file system may have become read-only) stays, and the
  /// worker's cgroup gets a record that it doesn't count any more.
  ///
  /// - Parameter keepsBase: true keeps a complete image under another name, as the base of the next
  ///   image.
  func removeImage(
    _ image: ImageReader, of target: HibernationTarget, keepsBase: Bool
  ) throws(HibernationError) {
    let base = keepsBase ? baseFile(after: image, of: target.name) : nil
    do throws(HibernationError) { try removeImage(image, keeping: base) } catch {
      try ResumeMarker.write(image, of: target, because: error.reason)
      return dropOverlays(of: target.name, for: image.path)
    }
    guard let base else { return dropOverlays(of: target.name, for: image.path) }
    bases[target.name] = Base(file: base, current: image.pagesOfNextBase)
    arm(target.name)
  }

  private func removeImage(
    _ image: ImageReader, keeping base: BaseFile?
  ) throws(HibernationError) {
    guard let base, image.reference == nil else { return try removeImage(image.path) }
    do throws(SystemCallError) { try renameFile(image.path, to: base.path) } catch {
      throw HibernationError(.writingBack, "can't rename \(image.path): \(error.reason)")
    }
    FaultPoint.baseKept.pass()
  }

  /// Returns the file that stays of an image after commit B, or `nil` if it can't be a base.
  func baseFile(after image: ImageReader, of name: String) -> BaseFile? {
    guard let id = image.reference?.id ?? image.id else { return nil }
    let made = image.reference == nil ? nil : bases[name]?.file.made
    return BaseFile(
      path: ImageLayout.basePath(of: image.path), id: id, made: made ?? Clocks.monotonic)
  }

  /// Starts to record the worker's writes. All of its pages must be in place, and it must not run
  /// yet.
  private func arm(_ name: String) {
    for (identity, process) in trackers[name] ?? [:] {
      var armed: [PageRange] = []
      // If this fails, the next hibernation compares pages.
      if let pages = try? PageMap(pid: identity.pid) {
        armed = process.registered.filter { (try? pages.protect($0)) == true }
      }
      trackers[name]?[identity]?.armed = armed
    }
  }
}

extension ImageReader {
  /// The pages that the base of the next image has: those that this image's base supplies, or all
  /// if this image is complete. Large workers have tens of thousands of ranges, so this isn't
  /// computed before the worker runs.
  var pagesOfNextBase: [ProcessIdentity: [PageRange]] {
    let supplied =
      reference?.segments.map { (process: $0.process, ranges: $0.ranges) }
      ?? chunks.map { (process: $0.process, ranges: $0.ranges) }
    var pages: [ProcessIdentity: [PageRange]] = [:]
    for segment in supplied {
      pages[processes[Int(segment.process)].identity, default: []] += segment.ranges
    }
    // These stay in memory for as long as the base, so they are copied, without room for more.
    return pages.mapValues { $0.union().map(\.self) }
  }
}
