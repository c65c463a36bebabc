import Testing

@testable import Hibernation
@testable import Linux

enum OpenSSL {
  static let isThere = (try? CryptoLibrary.tryLoading()) != nil
}

/// Images are encrypted by a library that is loaded when it is needed.
@Suite(
  .enabled(if: OpenSSL.isThere, "OpenSSL's libcrypto isn't installed (Debian: libssl3)"))
struct CryptoLibraryTests {
  /// The test cases 13 to 16 of the GCM specification (McGrew and Viega, 2005), which NIST's
  /// validation uses.
  struct Vector: Sendable, CustomTestStringConvertible {
    var name: String
    var key, nonce, context, plain, sealed: String
    var testDescription: String { name }
  }

  private static let zeros = String(repeating: "0", count: 64)
  private static let longKey =
    "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
  private static let longText =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
  private static let longSealed =
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"

  static let vectors = [
    Vector(
      name: "13: nothing", key: zeros, nonce: String(zeros.prefix(24)), context: "", plain: "",
      sealed: "530f8afbc74536b9a963b4f1c4cb738b"),
    Vector(
      name: "14: one block", key: zeros, nonce: String(zeros.prefix(24)), context: "",
      plain: String(zeros.prefix(32)),
      sealed: "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"),
    Vector(
      name: "15: four blocks", key: longKey, nonce: "cafebabefacedbaddecaf888", context: "",
      plain: longText, sealed: longSealed + "b094dac5d93471bdec1a502270e3cc6c"),
    Vector(
      name: "16: a part of a block, and more that is authenticated", key: longKey,
      nonce: "cafebabefacedbaddecaf888", context: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
      plain: String(longText.dropLast(8)),
      sealed: longSealed.dropLast(8) + "76fc6ece0f4e1768cddf8853bb2d551b"),
  ]

  @Test("AES-256-GCM gives the results of NIST's vectors, and opens them again", arguments: vectors)
  func gcm(vector: Vector) throws {
    let library = try CryptoLibrary.load()
    let key = try secret(vector.key)
    let (nonce, context) = (try bytes(vector.nonce), try bytes(vector.context))
    let plain = try bytes(vector.plain)
    var sealed = [UInt8](repeating: 0, count: plain.count + 16)
    try plain.withUnsafeBytes { plain in
      try sealed.withUnsafeMutableBytes {
        try library.seal(plain, into: $0, key: key, nonce: nonce, authenticating: context)
      }
    }
    #expect(hex(sealed) == vector.sealed)
    try sealed.withUnsafeMutableBytes {
      try library.open($0, key: key, nonce: nonce, authenticating: context)
    }
    #expect(Array(sealed.dropLast(16)) == plain)
  }

  @Test func `Changed data isn't opened, and unauthenticated data is erased`() throws {
    let library = try CryptoLibrary.load()
    let vector = Self.vectors[3]
    let key = try secret(vector.key)
    let (nonce, context) = (try bytes(vector.nonce), try bytes(vector.context))
    let sealed = try bytes(vector.sealed)
    func opens(_ sealed: [UInt8], _ nonce: [UInt8], _ context: [UInt8]) -> [UInt8]? {
      var sealed = sealed
      let isOpen = sealed.withUnsafeMutableBytes { sealed in
        do throws(CryptoLibrary.Failed) {
          try library.open(sealed, key: key, nonce: nonce, authenticating: context)
        } catch {
          #expect(error.isOfData)
          return false
        }
        return true
      }
      if !isOpen { #expect(sealed.dropLast(16).allSatisfy { $0 == 0 }) }
      return isOpen ? Array(sealed.dropLast(16)) : nil
    }
    #expect(opens(sealed, nonce, context) == (try bytes(vector.plain)))
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 1
      #expect(opens(changed, nonce, context) == nil, "byte \(index)")
    }
    #expect(opens(sealed, nonce, []) == nil)
    #expect(opens(sealed, Array(nonce.reversed()), context) == nil)
    #expect(opens(Array(sealed.dropFirst()), nonce, context) == nil)
  }

  @Test func `An image that can't be decrypted while memory is short isn't a damaged one`() throws {
    // The key has a wrong length, so the library fails before it reads the data.
    let library = try CryptoLibrary.load()
    var data = [UInt8](repeating: 0, count: 32)
    let error = #expect(throws: CryptoLibrary.Failed.self) {
      try data.withUnsafeMutableBytes {
        try library.open(
          $0, key: SecretBytes(randomCount: 16), nonce: [UInt8](repeating: 0, count: 12),
          authenticating: [])
      }
    }
    #expect(error?.isOfData == false)
    for isShortage in [false, true] {
      let broken = Seal.Broken(isShortage: isShortage)
      let failure = ImageError.sealed(broken, path: "image", subject: "its index")
      #expect(HibernationError.isTransient(failure) == isShortage)
    }
  }

  @Test func `An image's key is derived as in RFC 5869 (its first test case)`() throws {
    let key = try CryptoLibrary.load().deriveKey(
      from: secret(String(repeating: "0b", count: 22)), salt: Array(0..<13),
      info: Array(0xf0...0xf9))
    #expect(
      key.withBytes { hex($0) }
        == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf")
  }

  /// swift-crypto, which Dormouse used before, wrote the data from the same key, identifier and
  /// content.
  @Test("Data that earlier versions sealed is opened, and sealing it today gives the same bytes")
  func earlier() throws {
    let seal = try Seal(
      Array(0xa0..<0xb0), bootKey: SecretBytes(count: 32) { $0.copyBytes(from: 0..<32) },
      library: .load())
    let text = Array("What a worker had in memory: passwords, keys, documents. 0123456789.".utf8)
    let chunk = ImageChunk(
      process: 3, writable: true, isPrefetched: true, offset: 0, storedLength: 0,
      ranges: [PageRange(address: 0x10000, length: 8192)])
    let header = Array(UInt8(0)..<64)
    let components: [([UInt8], Seal.Component, UInt64, String)] = [
      (
        text, .chunk(chunk), 0x1_2345_6789,
        "47b036118700faf4e6ce20364573f8f02b75bb3fbe57752e574182678f6b07055666d3b3ab16235bb6eebfaa"
          + "e1fd8fff3396315be2c924beb5d4533d81297092a31137a9aeeebd87ec6f0bb6607e830f28e85665"
      ),
      (
        text, .index(header: header), 64,
        "33bcd0c7097b4c26936a2bea3e6a88f49dfa98807afca38016f8ee253f8fa58084d90ba1461e21a372a1e15d"
          + "9537621a3815cc349efb8d22b49492a8e2ed9bb27514818d41598e73152881aec0b9e46a33c324c2"
      ),
      ([], .index(header: header), 64, "d391f99c1ad8457176b57e3516017073"),
    ]
    for (content, component, offset, expected) in components {
      var sealed = try content.withUnsafeBytes { try seal.close($0, component, at: offset) }
      #expect(hex(sealed) == expected)
      try seal.open(&sealed, component, at: offset)
      #expect(sealed == content)
    }
  }

  @Test func `Threads may seal and open at the same time`() async throws {
    let seal = try Seal(
      Array(0..<16), bootKey: SecretBytes(randomCount: 32), library: CryptoLibrary.load())
    await withTaskGroup(of: Bool.self) { group in
      for number in UInt64(0)..<8 {
        group.addTask {
          let header = [UInt8](repeating: 0, count: 64)
          let content = [UInt8](repeating: UInt8(number), count: 10_000)
          return (0..<50).allSatisfy { round in
            let offset = number << 32 | UInt64(round)
            guard
              var sealed = try? content.withUnsafeBytes({
                try seal.close($0, .index(header: header), at: offset)
              })
            else { return false }
            do throws(Seal.Broken) {
              try seal.open(&sealed, .index(header: header), at: offset)
            } catch { return false }
            return sealed == content
          }
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }

  private func secret(_ text: String) throws -> SecretBytes {
    let bytes = try bytes(text)
    return SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  private func bytes(_ text: String) throws -> [UInt8] {
    let digits = Array(text)
    return try stride(from: 0, to: digits.count, by: 2).map {
      try #require(UInt8(String(digits[$0...($0 + 1)]), radix: 16))
    }
  }

  private func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }
}

/// These tests need no library.
@Suite struct MissingCryptoLibraryTests {
  @Test func `A missing library is an error that says what to install`() {
    let error = #expect(throws: CryptoLibraryError.self) {
      _ = try CryptoLibrary(anyOf: ["libdormouse-nothing.so.3", "libdormouse-nothing.so.1.1"])
    }
    #expect(
      error?.description
        == "can't load OpenSSL's libdormouse-nothing.so.3: cannot open shared object file: "
        + "No such file or directory; install OpenSSL 3 (Debian: libssl3)")
  }

  @Test func `Another library of that name is an error that names the missing function`() {
    let error = #expect(throws: CryptoLibraryError.self) {
      _ = try CryptoLibrary(anyOf: ["libm.so.6"])
    }
    #expect(
      error?.description
        == "can't use OpenSSL's libm.so.6: EVP_CIPHER_CTX_new isn't in it, or fails; "
        + "install OpenSSL 3 (Debian: libssl3)")
  }

  @Test func `An image that can't be read because the library is missing may be read later`() {
    let error = SealError.library(.missing("libcrypto.so.3", reason: "no such file"))
    #expect(ImageError.locked(path: "/i", error).isTransient)
    #expect(!ImageError.locked(path: "/i", .key(.missing)).isTransient)
  }

  @Test func `Keys are equal if their bytes are equal`() {
    let key = SecretBytes(randomCount: 32)
    #expect(key == key.withBytes { bytes in SecretBytes(count: 32) { $0.copyMemory(from: bytes) } })
    #expect(key != SecretBytes(randomCount: 32))
    #expect(key != SecretBytes(randomCount: 16))
  }
}
