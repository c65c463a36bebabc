// This file replaces Sources/Hibernation/Keys/CryptoLibrary.swift in the fuzzer, so that the fuzzer
// reaches sealed content: a seal whose tag is all zeros opens without a change. It has only the
// functions that Sources/Hibernation uses.

public struct CryptoLibrary: Sendable {
  static let tagLength = 16

  static func load() throws(CryptoLibraryError) -> CryptoLibrary { CryptoLibrary() }
  public static func tryLoading() throws(CryptoLibraryError) -> String { "no OpenSSL" }

  struct Failed: Error { var isOfData = false }

  func hmacSHA256(key: SecretBytes, _ message: SecretBytes) throws(Failed) -> SecretBytes {
    SecretBytes(count: 32) { _ in }
  }

  func seal(
    _ content: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, key: SecretBytes,
    nonce: [UInt8], authenticating context: [UInt8]
  ) throws(Failed) {
    target.copyMemory(from: content)
    for index in content.count..<target.count { target[index] = 0 }
  }

  func open(
    _ sealed: UnsafeMutableRawBufferPointer, key: SecretBytes, nonce: [UInt8],
    authenticating context: [UInt8]
  ) throws(Failed) {
    guard sealed.suffix(Self.tagLength).allSatisfy({ $0 == 0 }) else {
      throw Failed(isOfData: true)
    }
  }
}

public enum CryptoLibraryError: Error, Sendable, CustomStringConvertible {
  case missing(String, reason: String)
  public var description: String { "no OpenSSL" }
  public var reason: String { description }
}
