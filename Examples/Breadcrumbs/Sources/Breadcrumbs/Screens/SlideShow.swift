import WorkerKit

/// Shows one photo after another, without an end.
///
/// The talk's slide show kept the bitmap of each step, 4 bytes per pixel, and never used it again.
/// This one does so with `slideshow leak`. Otherwise it keeps the last few in a cache, which a
/// warning empties.
struct SlideShow {
  let album: Album
  /// The position, from 1 on; `nil` if the slide show doesn't run.
  private(set) var position: Int?
  var isLeaking: Bool

  /// The last four photos, for a user that moves back and forth.
  private let recent = MemoryCache<Int, Bitmap>(name: "slides", costLimit: 32 << 20)
  /// The leaked photos. No warning frees them, because WorkerKit has no reference to them.
  private(set) var leaked: [Bitmap] = []

  init(album: Album, position: Int? = nil, isLeaking: Bool) {
    self.album = album
    self.isLeaking = isLeaking
    self.position = position.map { max(1, min(album.count, $0)) }
  }

  /// Starts with the first photo.
  mutating func start() throws(PhotoError) -> Bitmap {
    position = 1
    return try show(1)
  }

  /// Returns the next photo; `nil` if the slide show doesn't run.
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
