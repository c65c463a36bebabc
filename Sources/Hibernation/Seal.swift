// SymmetricKey isn't declared Sendable in this version; it is a value that nobody changes.
@preconcurrency import Crypto
import Glibc
import Linux

/// Encrypts and authenticates the parts of one image (AES-256-GCM, NIST SP 800-38D).
///
/// Each image has a key of its own, derived from the boot key by the image's random identifier
/// (HKDF-SHA-256, RFC 5869), so that a part's place in the file is a nonce that never repeats. What is
/// authenticated beside the content says which image, which place and what size, so that parts can't
/// change places, neither within an image nor between two.
struct Seal: Sendable {
  /// What sealing adds to a part's length, in bytes.
  static let overhead = 16
  static let identifierLength = 16

  let identifier: [UInt8]
  private let key: SymmetricKey

  /// For a new image in the directory of `path`.
  static func new(for path: String) throws(BootKeyError) -> Seal {
    var random = SystemRandomNumberGenerator()
    let identifier = (0..<identifierLength).map { _ in UInt8.random(in: 0...255, using: &random) }
    return Seal(identifier, try BootKey.forSealing(in: directory(of: path)))
  }

  /// Of an image that is there.
  static func of(_ identifier: [UInt8], at path: String) throws(BootKeyError) -> Seal {
    Seal(identifier, try BootKey.forOpening(in: directory(of: path)))
  }

  private init(_ identifier: [UInt8], _ bootKey: SymmetricKey) {
    self.identifier = identifier
    key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: bootKey, salt: identifier, info: Array("dormouse image".utf8),
      outputByteCount: 32)
  }

  /// What a part is, beside where it is.
  enum Part {
    case chunk(ImageChunk)
    /// With the file's header, of which the index's own checksum and the progress don't count.
    case index(header: [UInt8])
  }

  /// The sealed part, `overhead` bytes longer.
  func close(
    _ content: UnsafeRawBufferPointer, _ part: Part, at offset: UInt64
  ) throws(SystemCallError) -> [UInt8] {
    do {
      let box = try AES.GCM.seal(
        content, using: key, nonce: Self.nonce(offset),
        authenticating: authenticated(part, offset, content.count))
      return [UInt8](box.ciphertext) + [UInt8](box.tag)
    } catch { throw SystemCallError("encrypt", on: "an image", code: EIO) }
  }

  struct Broken: Error {}

  /// Opens a sealed part in place; its content's length.
  func open(
    _ sealed: UnsafeMutableRawBufferPointer, _ part: Part, at offset: UInt64
  ) throws(Broken) -> Int {
    let length = sealed.count - Self.overhead
    guard length >= 0 else { throw Broken() }
    do {
      let box = try AES.GCM.SealedBox(
        nonce: Self.nonce(offset), ciphertext: UnsafeRawBufferPointer(rebasing: sealed[..<length]),
        tag: UnsafeRawBufferPointer(rebasing: sealed[length...]))
      sealed.copyBytes(
        from: try AES.GCM.open(
          box, using: key, authenticating: authenticated(part, offset, length)))
      return length
    } catch { throw Broken() }
  }

  /// The same for an array, which is shortened.
  func open(_ sealed: inout [UInt8], _ part: Part, at offset: UInt64) throws(Broken) {
    let length = sealed.withUnsafeMutableBytes { try? open($0, part, at: offset) }
    guard let length else { throw Broken() }
    sealed.removeLast(sealed.count - length)
  }

  private static func nonce(_ offset: UInt64) throws -> AES.GCM.Nonce {
    var writer = ByteWriter()
    writer.append(UInt32(0))
    writer.append(offset)
    return try AES.GCM.Nonce(data: writer.bytes)
  }

  private func authenticated(_ part: Part, _ offset: UInt64, _ length: Int) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(identifier)
    writer.append(offset)
    writer.append(UInt64(length))
    switch part {
    case .chunk(let chunk):
      writer.append(UInt32(1))
      writer.append(chunk.process)
      writer.append(chunk.flags)
      writer.append(UInt64(chunk.length))
    case .index(let header):
      writer.append(UInt32(2))
      writer.append(Array(header[..<12]))
      writer.append(Array(header[16..<56]))
    }
    return writer.bytes
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
