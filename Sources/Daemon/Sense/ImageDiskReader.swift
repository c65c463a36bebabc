import Glibc
import Hibernation
import Lifecycle
import Linux

/// Reads the state of the images' file system and the sizes of the existing workers' images, on
/// another thread. It belongs to the event loop's thread.
final class ImageDiskReader {
  private let directory: String
  private let workers: WorkerRegistry
  /// Returns the bytes of all images that share the budget; nil if those are the images of
  /// `workers`.
  private let sharedImages: (@Sendable () -> Int64)?
  private let jobs: LoopJobs
  /// The path of a worker's image, by the worker's name.
  private let image: (String) -> String
  private lazy var shared = makeShared()
  private var didBegin: () -> Void = {}

  /// - Parameter directory: the directory of the images.
  init(
    _ jobs: LoopJobs, directory: String, _ workers: WorkerRegistry,
    sharedImages: (@Sendable () -> Int64)?, image: @escaping (String) -> String
  ) {
    self.jobs = jobs
    self.image = image
    self.directory = directory
    self.workers = workers
    self.sharedImages = sharedImages
  }

  /// Sets the function to call when a reading didBegin. The reading uses the workers as they are
  /// then.
  func onBegin(_ action: @escaping () -> Void) { didBegin = action }

  /// Reads and calls back once on the event loop, later, with nil if the file system didn't answer
  /// in time.
  func ask(then: @escaping (ImageDisk?) -> Void) { shared.ask(then: then) }

  private func makeShared() -> CoalescedProbe<ImageDisk> {
    CoalescedProbe(jobs, about: "disk of images", within: ImageDiskMonitor.timeout) {
      [unowned self] in job()
    }
  }

  private func job() -> @Sendable () -> ImageDisk {
    didBegin()
    let directory = directory
    if let sharedImages {
      return {
        var result = ImageDisk()
        result.askFileSystem(directory)
        result.wrapped = sharedImages()
        return result
      }
    }
    let images = workers.values.map { worker in
      let name = worker.id.name
      let trimImage = worker.bytesInTrimImage > 0 ? image(name) : nil
      return (
        name: name, path: worker.image?.path ?? trimImage,
        base: Hibernator.basePath(of: image(name))
      )
    }
    return { ImageDisk.read(directory, images) }
  }
}

extension ImageDiskMonitor {
  /// The monitor of the daemon's images.
  convenience init(
    services: Services, driver: EngineDriver, state: StateDirectory, reader: ImageDiskReader
  ) {
    let (disk, log) = (services.disk, services.log)
    self.init(
      directory: state.images, ledger: WriteLedger(path: state.writes),
      Needs(
        read: { reader.ask(then: $0) }, send: { driver.send($0) },
        removeOutdated: { [hibernation = services.hibernation] in
          hibernation.dropIdleBases(outdated: true)
        },
        save: { ledger in
          disk.write("can't record how much is written to images", log) {
            try ledger.save()
          }
        }, time: { Int64(time(nil)) }, log: log.callAsFunction))
    reader.onBegin { [unowned self] in didBeginReading() }
  }
}
