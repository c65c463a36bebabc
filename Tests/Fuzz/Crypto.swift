// Stands in for swift-crypto in the fuzzer, so that what is behind a seal is reached: a seal whose tag
// is all zeros opens, and changes nothing. Only what Sources/Hibernation uses.

public struct SymmetricKey: Sendable, Equatable {
  public enum Size { case bits256 }
  private let bytes: [UInt8]
  public init(size: Size) { bytes = [UInt8](repeating: 7, count: 32) }
  public init(data: [UInt8]) { bytes = data }
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  { try bytes.withUnsafeBytes(body) }
}

public enum SHA256 {}

public enum HKDF<Hash> {
  public static func deriveKey(
    inputKeyMaterial: SymmetricKey, salt: [UInt8], info: [UInt8], outputByteCount: Int
  ) -> SymmetricKey { inputKeyMaterial }
}

public enum AES {
  public enum GCM {
    public struct Wrong: Error {}
    public struct Nonce { public init(data: [UInt8]) throws {} }
    public struct SealedBox {
      public let ciphertext: [UInt8]
      public let tag: [UInt8]
      public init(nonce: Nonce, ciphertext: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer)
        throws
      {
        self.ciphertext = Array(ciphertext)
        self.tag = Array(tag)
      }
    }

    public static func seal(
      _ content: UnsafeRawBufferPointer, using: SymmetricKey, nonce: Nonce, authenticating: [UInt8]
    ) throws -> SealedBox {
      let tag = [UInt8](repeating: 0, count: 16)
      return try tag.withUnsafeBytes {
        try SealedBox(nonce: nonce, ciphertext: content, tag: $0)
      }
    }

    public static func open(
      _ box: SealedBox, using: SymmetricKey, authenticating: [UInt8]
    ) throws -> [UInt8] {
      guard box.tag.allSatisfy({ $0 == 0 }) else { throw Wrong() }
      return box.ciphertext
    }
  }
}
