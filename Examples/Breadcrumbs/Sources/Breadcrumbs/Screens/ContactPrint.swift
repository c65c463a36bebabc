/// A photo as letters, denser ones for lighter areas, with its digest below. Comparing two prints
/// compares all pixels.
enum ContactPrint {
  private static let columns = 48
  private static let rows = 18
  private static let ramp = Array(" .:-=+*#%@")

  static func text(of photo: Result<Bitmap, PhotoError>) -> String {
    switch photo {
    case .success(let bitmap):
      """
      \(letters(bitmap))
      photo: \(bitmap.width) × \(bitmap.height), \(megabytes(bitmap.byteCount)) decoded, \
      \(bitmap.digest)
      """
    case .failure(let error): "photo: \(error)"
    }
  }

  private static func letters(_ bitmap: Bitmap) -> String {
    let cells = bitmap.withPixels { pixels in
      (0..<(columns * rows)).map { index in
        brightness(
          pixels, bitmap, left: index % columns * bitmap.width / columns,
          top: index / columns * bitmap.height / rows)
      }
    }
    let (darkest, brightest) = (cells.min() ?? 0, cells.max() ?? 0)
    let range = max(1, brightest - darkest)
    return (0..<rows).map { row in
      let letters = cells[(row * columns)..<((row + 1) * columns)].map {
        ramp[($0 - darkest) * (ramp.count - 1) / range]
      }
      return String(letters)
    }.joined(separator: "\n")
  }

  /// The brightness of a cell, from sixteen of its pixels.
  private static func brightness(
    _ pixels: UnsafeBufferPointer<UInt32>, _ bitmap: Bitmap, left: Int, top: Int
  ) -> Int {
    let (right, down) = (max(1, bitmap.width / columns / 4), max(1, bitmap.height / rows / 4))
    var sum = 0
    for step in 0..<16 {
      let x = min(bitmap.width - 1, left + step % 4 * right)
      let y = min(bitmap.height - 1, top + step / 4 * down)
      let pixel = Int(pixels[y * bitmap.width + x])
      sum += 3 * (pixel & 0xff) + 6 * (pixel >> 8 & 0xff) + (pixel >> 16 & 0xff)
    }
    return sum
  }
}

/// The number of megabytes as text, with one decimal.
func megabytes(_ bytes: Int) -> String {
  let tenths = (bytes * 10 + (1 << 19)) >> 20
  return "\(tenths / 10).\(tenths % 10) MB"
}
