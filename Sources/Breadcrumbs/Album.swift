import Glibc
import WorkerKit

/// The photos: files that are made when they are first wanted, their pixels, and small versions of them.
final class Album: Sendable {
  private let directory: String
  private let thumbnails = MemoryCache<Int, Bitmap>(name: "thumbnails", costLimit: 4 << 20)

  init(directory: String) { self.directory = directory }

  /// Decoded anew each time: whoever wants to keep it keeps 12 MB.
  func photo(of entry: Int) throws(JPEGError) -> Bitmap { try JPEG.decode(file(entry)) }

  /// An eighth of each side, from the cache where it is there.
  func thumbnail(of entry: Int) throws(JPEGError) -> Bitmap {
    try thumbnails.value(for: entry, cost: { $0.byteCount }) { () throws(JPEGError) in
      try JPEG.decode(file(entry), eighths: 1)
    }
  }

  var thumbnailCount: Int { thumbnails.statistics.count }

  private func file(_ entry: Int) throws(JPEGError) -> [UInt8] {
    let path = "\(directory)/photo-\(entry).jpeg"
    if let data = Files.read(path) { return data }
    let data = try Photographer.photo(entry)
    guard Files.write(data, to: path) else {
      throw JPEGError(operation: "writing \(path)", message: String(cString: strerror(errno)))
    }
    return data
  }
}

extension Bitmap {
  /// For people, and for comparing: size and checksum.
  var told: String {
    let digits = String(digest, radix: 16)
    return "\(width) × \(height), "
      + String(repeating: "0", count: 16 - digits.count) + digits
  }
}
