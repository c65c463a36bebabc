import CTurboJPEG

/// A picture that can't be read or written, with libturbojpeg's message.
struct JPEGError: Error, Hashable, CustomStringConvertible {
  let operation: String
  let message: String

  var description: String { "JPEG, \(operation): \(message)" }
}

/// Decodes and encodes JPEG. Nothing is kept between calls: the codec's own memory ends with each.
enum JPEG {
  private static let layout = Int32(TJPF_RGBX.rawValue)

  /// Decodes a picture. `eighths` is the scale of its sides, from 1 to 16; the sides are rounded
  /// up. A scale below 8 is less work than the whole.
  static func decode(_ data: [UInt8], eighths: Int = 8) throws(JPEGError) -> Bitmap {
    precondition((1...16).contains(eighths))
    guard let codec = tjInitDecompress() else { throw failure("decoding", of: nil) }
    defer { tjDestroy(codec) }
    var (width, height, sampling, space): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
    let code = tjDecompressHeader3(
      codec, data, UInt(data.count), &width, &height, &sampling, &space)
    guard code == 0 else { throw failure("reading the header", of: codec) }
    func scaled(_ side: Int32) -> Int { (Int(side) * eighths + 7) / 8 }
    // A header that is cut off is reported as read, with sides of 0.
    guard (1...8192).contains(width), (1...8192).contains(height) else {
      throw JPEGError(operation: "decoding", message: "\(width) × \(height) is no size of a photo")
    }
    return try Bitmap(width: scaled(width), height: scaled(height)) {
      (pixels) throws(JPEGError) in
      let code = tjDecompress2(
        codec, data, UInt(data.count), bytes(of: pixels), Int32(scaled(width)), 0,
        Int32(scaled(height)), layout, 0)
      if code != 0 { throw failure("decoding", of: codec) }
    }
  }

  /// Encodes a picture. `quality` is from 1 to 100.
  static func encode(_ bitmap: Bitmap, quality: Int) throws(JPEGError) -> [UInt8] {
    guard let codec = tjInitCompress() else { throw failure("encoding", of: nil) }
    defer { tjDestroy(codec) }
    var buffer: UnsafeMutablePointer<UInt8>?
    var size: UInt = 0
    defer { tjFree(buffer) }
    let code = bitmap.withPixels { pixels in
      pixels.withMemoryRebound(to: UInt8.self) {
        tjCompress2(
          codec, $0.baseAddress, Int32(bitmap.width), 0, Int32(bitmap.height), layout, &buffer,
          &size, Int32(TJSAMP_420.rawValue), Int32(quality), 0)
      }
    }
    guard code == 0, let buffer else { throw failure("encoding", of: codec) }
    return Array(UnsafeBufferPointer(start: buffer, count: Int(size)))
  }

  private static func bytes(
    of pixels: UnsafeMutableBufferPointer<UInt32>
  ) -> UnsafeMutablePointer<UInt8>? {
    UnsafeMutableRawPointer(pixels.baseAddress)?.assumingMemoryBound(to: UInt8.self)
  }

  private static func failure(_ operation: String, of codec: tjhandle?) -> JPEGError {
    JPEGError(operation: operation, message: String(cString: tjGetErrorStr2(codec)))
  }
}
