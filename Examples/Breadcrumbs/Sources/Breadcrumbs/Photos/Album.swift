import Glibc

/// The reason why a photo can't be read or made.
struct PhotoError: Error, Hashable, CustomStringConvertible {
  let description: String
}

/// The photos as files, from which the screen's pictures can always be decoded again.
struct Album: Sendable {
  private static let size = (width: 800, height: 600)
  /// The number of the screen's pixels for one of the photo's, in each direction. A decoded photo
  /// has 1600 × 1200 pixels, 7.3 MB, while painting the first photos takes no longer than needed.
  private static let fineness = 2

  let directory: String

  var count: Int { Scene.all.count }

  func path(_ number: Int) -> String { "\(directory)/\(number).jpg" }

  /// Paints the photos that don't exist yet. All of them take about two seconds in a debug build.
  func prepare() throws(PhotoError) {
    for (index, scene) in Scene.all.enumerated() where access(path(index + 1), R_OK) != 0 {
      let bitmap = Landscape.bitmap(
        scene, seed: UInt32(index + 1), width: Self.size.width, height: Self.size.height)
      let bytes: [UInt8]
      do {
        bytes = try JPEG.encode(bitmap, quality: 88)
      } catch {
        throw PhotoError(description: "painting photo \(index + 1): \(error)")
      }
      try write(bytes, to: path(index + 1))
    }
  }

  /// The bytes of a photo's file.
  func jpeg(_ number: Int) throws(PhotoError) -> [UInt8] {
    guard let bytes = File.read(path(number)) else {
      throw PhotoError(description: "photo \(number) can't be read")
    }
    return bytes
  }

  /// The photo at the size of the screen, with 4 bytes per pixel.
  func photo(_ number: Int) throws(PhotoError) -> Bitmap {
    try decode(number, eighths: 8 * Self.fineness)
  }

  /// The photo at a quarter of the screen's size in each direction.
  func thumbnail(_ number: Int) throws(PhotoError) -> Bitmap {
    try decode(number, eighths: 2 * Self.fineness)
  }

  private func decode(_ number: Int, eighths: Int) throws(PhotoError) -> Bitmap {
    let data = try jpeg(number)
    do {
      return try JPEG.decode(data, eighths: eighths)
    } catch {
      throw PhotoError(description: "photo \(number): \(error)")
    }
  }

  private func write(_ bytes: [UInt8], to path: String) throws(PhotoError) {
    // The file is renamed when it is complete, so that a program that is ended meanwhile leaves no
    // partial photo.
    guard File.write(bytes, to: "\(path).new"), rename("\(path).new", path) == 0 else {
      throw PhotoError(description: "\(path) can't be written")
    }
  }
}
