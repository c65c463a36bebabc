// The samples of the documentation, line by line, so that the compiler checks them. `ArticleTests`
// checks that both are the same.
import WorkerKit

// MARK: - What the samples are about

struct Entry: Sendable {
  var text: String
  var photoPath: String
}

struct Photo: Sendable {
  var id: Int
  var path: String
}

extension Photo { typealias ID = Int }

struct Bitmap: Sendable {
  var bytes: [UInt8]
  var byteCount: Int { bytes.count }
  init(decoding path: String, maximumSide: Int = 4000) { bytes = Array(path.utf8) }
}

actor Renderer {
  func dropCompiledTemplates() {}
}

actor SearchIndex {
  func unload() {}
}

actor Outbox {
  func keep(_ entry: Entry) {}
}

actor Feed {
  func refresh() {}
}

final class Pages: Sendable {
  func dropAllButCurrent() {}
}

private func saveDrafts() async {}
private func upload(_ entry: Entry) async throws {}
private func draw(_ photo: Bitmap) {}
private let outbox = Outbox()
private let feed = Feed()

// MARK: - WorkerKit.md

func landingSample() {
  final class Journal: WorkerDelegate {
    func didEnterBackground() async { await saveDrafts() }
    func willTerminate(reason: String) async { await saveDrafts() }
  }

  let journal = Journal()
  Worker.shared.connect(delegate: journal)
}

// MARK: - InTheForeground.md

enum ForegroundSamples {
  final class Gallery: WorkerDelegate {
    let renderer = Renderer()

    func didReceiveMemoryWarning(_ warning: MemoryWarning) async {
      await renderer.dropCompiledTemplates()
    }
  }

  func watch(_ index: SearchIndex) async {
    for await event in Worker.shared.events {
      if case .didReceiveMemoryWarning = event { await index.unload() }
    }
  }

  final class Preview: Sendable {
    let pages = Pages()

    func start() {
      Worker.shared.onMemoryWarning(of: self) { preview in
        preview.pages.dropAllButCurrent()
      }
    }
  }

  @MainActor final class EntryScreen {
    var draft: String  // can't be made again: stays
    @Unloadable var photo: Bitmap  // can

    init(_ entry: Entry) {
      draft = entry.text
      _photo = Unloadable { Bitmap(decoding: entry.photoPath) }
    }

    func show() {
      $photo.use { photo in draw(photo) }
    }
  }
}

func testThatTheGalleryShedsItsMemory() async {
  let (before, after) = await Worker.shared.simulateMemoryWarning()
  print("freed \(before.total - after.total) bytes of \(before.total)")
}

// MARK: - InTheBackground.md

func send(_ entry: Entry) async throws {
  try await withBackgroundTask(named: "upload", limit: .seconds(60)) {
    try await upload(entry)
  } onExpiration: {
    await outbox.keep(entry)
  }
}

actor Journal {
  var entryCount = 0
}

func prepareSnapshot(of journal: Journal) {
  Worker.shared.setSnapshotProvider {
    .text("\(await journal.entryCount) entries, one unsent")
  }
}

final class Reader: WorkerDelegate {
  func didResume(_ resumption: Resumption) async {
    if resumption.asleep > .seconds(60) { await feed.refresh() }
  }
}

// MARK: - CachingWithoutHoarding.md

let thumbnails = MemoryCache<Photo.ID, Bitmap>(name: "thumbnails", costLimit: 8 << 20)

func thumbnail(of photo: Photo) -> Bitmap {
  thumbnails.value(for: photo.id, cost: \.byteCount) {
    Bitmap(decoding: photo.path, maximumSide: 160)
  }
}

func report() {
  let statistics = thumbnails.statistics
  print(statistics.hitRate ?? 0, statistics.count, statistics.cost, statistics.evictions)
}

let previews = MemoryCache<Photo.ID, PurgeableData>(
  name: "previews", options: keepingInBackground())

func keepingInBackground() -> CacheOptions {
  var options = CacheOptions()
  options.emptiesInBackground = false
  return options
}

func withPreview<Result>(of photo: Photo, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
  if let result = previews[photo.id]?.withContent(body) { return result }
  let bitmap = Bitmap(decoding: photo.path)
  previews.insert(
    PurgeableData(bitmap.bytes, isHeld: false), for: photo.id, cost: bitmap.byteCount)
  return bitmap.bytes.withUnsafeBytes(body)
}
