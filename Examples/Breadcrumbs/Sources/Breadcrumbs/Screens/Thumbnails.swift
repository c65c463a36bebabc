import WorkerKit

/// Small pictures of all entries, kept while there is memory for them. It is a cache of content
/// that the daemon can purge by itself, also while this program sleeps.
struct Thumbnails {
  private let cache = MemoryCache<Int, PurgeableData>(name: "thumbnails", costLimit: 8 << 20)
  let album: Album

  /// Returns the digest of a picture from the cache, or of one that is decoded again: the picture
  /// is the same.
  func digest(_ number: Int) throws(PhotoError) -> Digest {
    // A value in the cache may be purged before its content is used.
    if let digest = cache.value(for: number)?.withContent({ Digest($0) }) { return digest }
    let bitmap = try album.thumbnail(number)
    let content = bitmap.withPixels {
      PurgeableData(UnsafeRawBufferPointer($0), isHeld: false)
    }
    cache.insert(content, for: number, cost: content.count)
    return bitmap.digest
  }

  var statistics: CacheStatistics { cache.statistics }
}
