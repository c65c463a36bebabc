extension CryptoLibrary {
  /// Derives a key of 32 bytes for one purpose: HKDF-SHA-256 (RFC 5869) with a single block of
  /// output.
  func deriveKey(
    from material: SecretBytes, salt: [UInt8], info: String
  ) throws(Failed) -> SecretBytes {
    try deriveKey(from: material, salt: salt, info: Array(info.utf8))
  }

  func deriveKey(
    from material: SecretBytes, salt: [UInt8], info: [UInt8]
  ) throws(Failed) -> SecretBytes {
    let extractionKey = SecretBytes(count: salt.count) { $0.copyBytes(from: salt) }
    let extracted = try hmacSHA256(key: extractionKey, material)
    let block = info + [1]
    return try hmacSHA256(
      key: extracted, SecretBytes(count: block.count) { $0.copyBytes(from: block) })
  }
}
