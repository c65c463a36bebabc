import Glibc
import Linux

/// Encrypts and authenticates the chunks and the index of one image (AES-256-GCM, NIST SP 800-38D).
///
/// Each image has a key of its own, derived from the boot key by the image's random identifier
/// (HKDF-SHA-256, RFC 5869). So a component's offset in the file is a nonce that never repeats. The
/// image, the offset and the size are authenticated together with the content, so components can't
/// be exchanged within an image or between two images.
struct Seal: Sendable {
  /// The number of bytes by which a sealed component is longer than its content.
  static let overhead = CryptoLibrary.tagLength
  static let identifierLength = 16

  let identifier: [UInt8]
  private let key: SecretBytes
  private let library: CryptoLibrary

  /// Makes the seal of a new image, in the directory of `path`.
  static func new(for path: String) throws(SealError) -> Seal {
    var random = SystemRandomNumberGenerator()
    let identifier = (0..<identifierLength).map { _ in UInt8.random(in: 0...255, using: &random) }
    return try make(identifier) { () throws(BootKeyError) in
      try BootKey.forSealing(in: directory(of: path))
    }
  }

  /// Returns the seal of an existing image.
  static func of(_ identifier: [UInt8], at path: String) throws(SealError) -> Seal {
    try make(identifier) { () throws(BootKeyError) in
      try BootKey.forOpening(in: directory(of: path))
    }
  }

  private static func make(
    _ identifier: [UInt8], bootKey: () throws(BootKeyError) -> SecretBytes
  ) throws(SealError) -> Seal {
    let library: CryptoLibrary
    // The library comes first: without it, no key has to be made.
    do throws(CryptoLibraryError) { library = try .load() } catch { throw .library(error) }
    let key: SecretBytes
    do throws(BootKeyError) { key = try bootKey() } catch { throw .key(error) }
    do throws(CryptoLibrary.Failed) {
      return try Seal(identifier, bootKey: key, library: library)
    } catch { throw .derivation }
  }

  init(
    _ identifier: [UInt8], bootKey: SecretBytes, library: CryptoLibrary
  ) throws(CryptoLibrary.Failed) {
    self.identifier = identifier
    self.library = library
    key = try library.deriveKey(from: bootKey, salt: identifier, info: "dormouse image")
  }

  /// What is sealed: a chunk, or the index.
  enum Component {
    case chunk(ImageChunk)
    /// The index is authenticated together with the file's header, except for the index's checksum
    /// and the progress.
    case index(header: [UInt8])
  }

  /// Returns the sealed component, which is `overhead` bytes longer.
  func close(
    _ content: UnsafeRawBufferPointer, _ component: Component, at offset: UInt64
  ) throws(SystemCallError) -> [UInt8] {
    var sealed = [UInt8](repeating: 0, count: content.count + Self.overhead)
    let context = authenticated(component, offset: offset, length: content.count)
    let isSealed = sealed.withUnsafeMutableBytes { sealed in
      do throws(CryptoLibrary.Failed) {
        try library.seal(
          content, into: sealed, key: key, nonce: Self.nonce(offset), authenticating: context)
      } catch { return false }
      return true
    }
    guard isSealed else { throw SystemCallError("encrypt", on: "an image", code: EIO) }
    return sealed
  }

  /// A component can't be opened.
  struct Broken: Error {
    /// True if memory is short, which says nothing about the component.
    var isShortage = false
  }

  /// Opens a sealed component in place. Returns the length of its content.
  func open(
    _ sealed: UnsafeMutableRawBufferPointer, _ component: Component, at offset: UInt64
  ) throws(Broken) -> Int {
    let length = sealed.count - Self.overhead
    guard length >= 0 else { throw Broken() }
    do throws(CryptoLibrary.Failed) {
      try library.open(
        sealed, key: key, nonce: Self.nonce(offset),
        authenticating: authenticated(component, offset: offset, length: length))
    } catch { throw Broken(isShortage: !error.isOfData) }
    return length
  }

  /// Opens a sealed component in an array, and shortens the array to the content.
  func open(_ sealed: inout [UInt8], _ component: Component, at offset: UInt64) throws(Broken) {
    let result = sealed.withUnsafeMutableBytes { buffer in
      Result { () throws(Broken) in try open(buffer, component, at: offset) }
    }
    let length = try result.get()
    sealed.removeLast(sealed.count - length)
  }

  private static func nonce(_ offset: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(UInt32(0))
    writer.append(offset)
    return writer.bytes
  }

  private func authenticated(_ component: Component, offset: UInt64, length: Int) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(identifier)
    writer.append(offset)
    writer.append(UInt64(length))
    switch component {
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

/// The reason why an image can't be encrypted or decrypted here.
public enum SealError: Error, Sendable, CustomStringConvertible {
  case key(BootKeyError)
  case library(CryptoLibraryError)
  /// The library couldn't derive the image's key from that of its directory.
  case derivation

  public var description: String {
    switch self {
    case .key(let error): error.description
    case .library(let error): error.description
    case .derivation: "OpenSSL's libcrypto can't compute HMAC-SHA-256"
    }
  }

  /// True if the failure says nothing about the image: it can be read when the cause is fixed.
  var isTransient: Bool {
    switch self {
    case .key(.missing): false
    case .key(.unusable), .library, .derivation: true
    }
  }
}
