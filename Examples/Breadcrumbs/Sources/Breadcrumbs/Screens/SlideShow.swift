import WorkerKit

/// One photo after the other, for ever.
///
/// That of the talk kept the bitmap of each step, 4 bytes a pixel, and nobody ever asked for it again. This one
/// does so when told to; otherwise it keeps the last few in a cache, which gives them back on a warning.
struct SlideShow {
  let album: Album
  /// From 1 on; `nil`: it doesn't run.
  private(set) var position: Int?
  var isLeaking: Bool

  /// Four photos, for those who go round and round.
  private let recent = MemoryCache<Int, Bitmap>(name: "slides", costLimit: 32 << 20)
  /// What the leak has kept. No warning reaches it: nobody knows what it is for.
  private(set) var leaked: [Bitmap] = []

  init(album: Album, position: Int? = nil, isLeaking: Bool) {
    self.album = album
    self.isLeaking = isLeaking
    self.position = position.map { max(1, min(album.count, $0)) }
  }

  /// From the beginning.
  mutating func start() throws(PhotoError) -> Bitmap {
    position = 1
    return try show(1)
  }

  /// `nil`: it doesn't run.
  mutating func next() throws(PhotoError) -> Bitmap? {
    guard let last = position else { return nil }
    let next = last % album.count + 1
    position = next
    return try show(next)
  }

  mutating func stop() { position = nil }

  private mutating func show(_ number: Int) throws(PhotoError) -> Bitmap {
    guard isLeaking else {
      return try recent.value(for: number, cost: \.byteCount) { () throws(PhotoError) in
        try album.photo(number)
      }
    }
    let bitmap = try album.photo(number)
    leaked.append(bitmap)
    return bitmap
  }

  var statistics: CacheStatistics { recent.statistics }
}
