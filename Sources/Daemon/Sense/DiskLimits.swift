import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

// The engine decides whether an image may be written; here is what the disk looks like. It is looked at on
// another thread: a disk that doesn't answer counts as full, and everything here goes by the last look.

/// What a look at the images' file system has found.
struct ImageDisk: Sendable {
  /// Of the file system; zero where it can't be asked.
  var total = ByteCount.zero
  var free = ByteCount.zero
  /// Bytes of images, and of what they lie over, by worker.
  var images: [String: Int64] = [:]
  var bases: [String: Int64] = [:]
  /// Of all wrappers together, where one of them asks.
  var wrapped: Int64?

  /// What of a worker stays on disk for its next image.
  func base(of worker: String) -> Int64 { bases[worker] ?? 0 }

  /// Of all images and what they lie over; and what of that belongs to workers that aren't hibernated.
  var bytes: (held: Int64, idle: Int64) {
    if let wrapped { return (wrapped, 0) }
    return bases.reduce((images.values.reduce(0, +), 0)) { sum, base in
      (sum.0 + base.value, sum.1 + (images[base.key] == nil ? base.value : 0))
    }
  }

  /// Not on the loop's thread: it waits for the file system.
  ///
  /// - Parameter workers: their names, and their images where they are hibernated.
  static func look(at directory: String, _ workers: [(name: String, path: String?, base: String)])
    -> ImageDisk
  {
    var result = ImageDisk()
    result.askFileSystem(directory)
    for worker in workers {
      if let path = worker.path { result.images[worker.name] = length(path) ?? 0 }
      if let base = length(worker.base) { result.bases[worker.name] = base }
    }
    return result
  }

  /// As `look`.
  mutating func askFileSystem(_ directory: String) {
    var usage = statvfs()
    guard statvfs(directory, &usage) == 0 else { return }
    // File systems without a size of their own answer with anything up to 2⁶⁴ blocks.
    func bytes(_ blocks: UInt) -> ByteCount {
      let (product, overflow) = UInt64(blocks).multipliedReportingOverflow(
        by: UInt64(usage.f_frsize))
      return ByteCount(overflow ? .max : Int64(clamping: product))
    }
    (total, free) = (bytes(usage.f_blocks), bytes(usage.f_bavail))
  }

  private static func length(_ path: String) -> Int64? {
    var info = stat()
    return stat(path, &info) == 0 ? Int64(info.st_size) : nil
  }
}

extension Daemon {
  /// So long the disk may take before it counts as full.
  private static let diskPatience = Duration.seconds(1)

  func makeDiskLook() -> SharedLook<ImageDisk> {
    SharedLook(jobs, about: "disk of images", within: Self.diskPatience) { [unowned self] in
      imagesAtLook = imagesWritten
      let directory = state.images
      if let settings = wrapped?.settings {
        return {
          var result = ImageDisk()
          result.askFileSystem(directory)
          result.wrapped = WrapStore.imageBytes(of: settings)
          return result
        }
      }
      let known = workers.values.map { runtime in
        let name = runtime.id.name
        return (
          name: name, path: runtime.image?.path,
          base: Hibernator.basePath(of: state.image(of: name))
        )
      }
      return { ImageDisk.look(at: directory, known) }
    }
  }

  /// Tells the engine what images may take, and then calls back: after `diskPatience` at the latest. What
  /// workers that run have left on disk for their next image counts as free: it gives way where room is
  /// short.
  func takeDiskReading(then done: @escaping () -> Void = {}) {
    diskLook.take { [unowned self] found in
      // It may lack an image that the engine has counted itself.
      if found != nil, imagesAtLook != imagesWritten { return takeDiskReading(then: done) }
      if let found {
        if !diskAnswers { log(.notice, "the disk of the images answers again") }
        imageDisk = found
      } else {
        // Its size stays known: an image then finds no room on it.
        (imageDisk.total, imageDisk.free) = (max(imageDisk.total, ByteCount(1)), .zero)
        if diskAnswers {
          log(
            .error,
            "the disk of the images doesn't answer (\(state.images), "
              + "\(Self.diskPatience.spoken)): no worker is hibernated until it does")
        }
      }
      diskAnswers = found != nil
      let (held, idle) = imageDisk.bytes
      driver.send(
        .disk(
          DiskReading(
            total: imageDisk.total,
            free: diskAnswers ? imageDisk.free + ByteCount(idle) : .zero,
            images: ByteCount(held - idle),
            writtenToday: ByteCount(ledger.total(at: Int64(time(nil))).bytes))))
      done()
    }
  }

  /// Before an image of about this much memory, reckoned without compression, and as if nothing were
  /// unchanged: takes away what others have left for their next ones, where that is in the way.
  func makeRoomOnDisk(for footprint: ByteCount) {
    let (held, idle) = imageDisk.bytes
    guard idle > 0 else { return }
    let rules = engine.policy.hibernate.disk
    var isShort = ByteCount(held) + footprint > rules.budget
    if imageDisk.total > .zero {
      let least = Double(imageDisk.total.bytes) * rules.minFreePercent / 100
      isShort = isShort || Double((imageDisk.free - footprint).bytes) < least
    }
    // Done before anything that is asked of it later.
    if isShort { hibernation.dropIdleBases() }
  }

  /// Its image became the next one's base, or was removed; the disk itself is asked afterwards.
  func noteResumed(_ runtime: WorkerRuntime) {
    let name = runtime.id.name
    imageDisk.images[name] = nil
    if !runtime.keepsBase { imageDisk.bases[name] = nil }
    takeDiskReading()
  }

  /// On the thread for small files: the worker has ended. Its next image waits for that.
  func removeImages(of runtime: WorkerRuntime) {
    let image = state.image(of: runtime.id.name)
    imageDisk.images[runtime.id.name] = nil
    imageDisk.bases[runtime.id.name] = nil
    let hadImage = runtime.image != nil
    runtime.imageRemoval = disk.submitAwaited { [mailbox] in
      unlink(image)
      unlink(Hibernator.basePath(of: image))
      if hadImage { mailbox.post { $0.takeDiskReading() } }
    }
  }
}
