import Glibc
import Synchronization

/// The functions of OpenSSL's libcrypto that Dormouse uses: AES-256-GCM and HMAC-SHA-256.
///
/// The library is loaded when an encrypted image is first written or read, and never if no policy
/// says `hibernate.encrypt`. Building Dormouse needs none of its headers: the functions are
/// declared here, and are the same in OpenSSL 1.1 and 3.
public struct CryptoLibrary: Sendable {
  /// The sonames of OpenSSL 3 (Debian 12: libssl3) and 1.1 (Debian 11: libssl1.1). The first one
  /// that exists is loaded.
  static let sonames = ["libcrypto.so.3", "libcrypto.so.1.1"]
  static let tagLength = 16

  private typealias Cipher = OpaquePointer
  private typealias Context = OpaquePointer
  private typealias Digest = OpaquePointer
  private typealias Bytes = UnsafePointer<UInt8>
  private typealias MutableBytes = UnsafeMutablePointer<UInt8>

  /// `OPENSSL_init_crypto`
  private typealias Initialize = @convention(c) (UInt64, OpaquePointer?) -> CInt
  /// `EVP_CIPHER_CTX_new`, `EVP_CIPHER_CTX_free`
  private typealias NewContext = @convention(c) () -> Context?
  private typealias FreeContext = @convention(c) (Context?) -> Void
  /// `EVP_aes_256_gcm`, `EVP_sha256`
  private typealias Algorithm = @convention(c) () -> OpaquePointer?
  /// `EVP_CipherInit_ex`; the third argument is an ENGINE.
  private typealias CipherInit =
    @convention(c) (Context?, Cipher?, OpaquePointer?, Bytes?, Bytes?, CInt) -> CInt
  /// `EVP_CipherUpdate`
  private typealias CipherUpdate =
    @convention(c) (Context?, MutableBytes?, UnsafeMutablePointer<CInt>?, Bytes?, CInt) -> CInt
  /// `EVP_CipherFinal_ex`
  private typealias CipherFinal =
    @convention(c) (Context?, MutableBytes?, UnsafeMutablePointer<CInt>?) -> CInt
  /// `EVP_CIPHER_CTX_ctrl`
  private typealias Control =
    @convention(c) (Context?, CInt, CInt, UnsafeMutableRawPointer?) -> CInt
  /// `HMAC`
  private typealias KeyedHash =
    @convention(c) (
      Digest?, UnsafeRawPointer?, CInt, Bytes?, Int, MutableBytes?,
      UnsafeMutablePointer<CUnsignedInt>?
    ) -> MutableBytes?
  /// `OpenSSL_version`
  private typealias Version = @convention(c) (CInt) -> UnsafePointer<CChar>?

  /// `EVP_CTRL_AEAD_GET_TAG` and `EVP_CTRL_AEAD_SET_TAG`
  private static let getTag: CInt = 0x10
  private static let setTag: CInt = 0x11
  /// `OPENSSL_INIT_NO_LOAD_CONFIG`: a file or an environment variable (OPENSSL_CONF) can't make the
  /// library load other code. `OPENSSL_INIT_NO_ATEXIT`: other threads may still use it when the
  /// process ends.
  private static let initialOptions: UInt64 = 0x80 | 0x80000

  private let newContext: NewContext
  private let freeContext: FreeContext
  private let aes256GCM: Algorithm
  private let sha256: Algorithm
  private let cipherInit: CipherInit
  private let cipherUpdate: CipherUpdate
  private let cipherFinal: CipherFinal
  private let control: Control
  private let hmac: KeyedHash
  private let version: Version

  private static let loaded = Mutex<CryptoLibrary?>(nil)

  /// Returns the library of this process. It stays loaded. If it can't be loaded, the next call
  /// tries again.
  static func load() throws(CryptoLibraryError) -> CryptoLibrary {
    try loaded.withLock { cached throws(CryptoLibraryError) in
      if let cached { return cached }
      let library = try CryptoLibrary(anyOf: sonames)
      guard library.passesSelfTest() else {
        throw .incomplete(library.versionText, symbol: "AES-256-GCM or HMAC-SHA-256")
      }
      cached = library
      return library
    }
  }

  /// Loads the library, to find out whether images can be encrypted here. Returns its version.
  public static func tryLoading() throws(CryptoLibraryError) -> String { try load().versionText }

  init(anyOf names: [String]) throws(CryptoLibraryError) {
    var reasons: [String] = []
    for name in names {
      guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else {
        let reason = dlerror().map { String(cString: $0) } ?? "no reason is given"
        // The loader's message begins with the requested name.
        reasons.append(
          reason.hasPrefix(name + ": ") ? String(reason.dropFirst(name.count + 2)) : reason)
        continue
      }
      do throws(CryptoLibraryError) {
        self = try CryptoLibrary(handle, name)
        return
      } catch {
        dlclose(handle)
        throw error
      }
    }
    // The first name is the preferred one.
    throw .missing(names.first ?? "", reason: reasons.first ?? "no name")
  }

  private init(_ handle: UnsafeMutableRawPointer, _ name: String) throws(CryptoLibraryError) {
    func function<Function>(
      _ symbol: String, _ type: Function.Type
    ) throws(CryptoLibraryError) -> Function {
      guard let address = dlsym(handle, symbol) else { throw .incomplete(name, symbol: symbol) }
      return unsafeBitCast(address, to: type)
    }
    newContext = try function("EVP_CIPHER_CTX_new", NewContext.self)
    freeContext = try function("EVP_CIPHER_CTX_free", FreeContext.self)
    aes256GCM = try function("EVP_aes_256_gcm", Algorithm.self)
    sha256 = try function("EVP_sha256", Algorithm.self)
    cipherInit = try function("EVP_CipherInit_ex", CipherInit.self)
    cipherUpdate = try function("EVP_CipherUpdate", CipherUpdate.self)
    cipherFinal = try function("EVP_CipherFinal_ex", CipherFinal.self)
    control = try function("EVP_CIPHER_CTX_ctrl", Control.self)
    hmac = try function("HMAC", KeyedHash.self)
    version = try function("OpenSSL_version", Version.self)
    let initialize = try function("OPENSSL_init_crypto", Initialize.self)
    guard initialize(Self.initialOptions, nil) == 1 else {
      throw .incomplete(name, symbol: "OPENSSL_init_crypto")
    }
  }

  /// The version as the library spells it, such as `OpenSSL 3.0.17 1 Jul 2025`.
  private var versionText: String { version(0).map { String(cString: $0) } ?? "OpenSSL" }
}

extension CryptoLibrary {
  /// A call of the library failed: the data isn't what was sealed (`isOfData`), or memory is short.
  struct Failed: Error { var isOfData = false }

  /// Computes HMAC-SHA-256 (RFC 2104): 32 bytes.
  func hmacSHA256(key: SecretBytes, _ message: SecretBytes) throws(Failed) -> SecretBytes {
    var isDone = false
    let result = SecretBytes(count: 32) { result in
      key.withBytes { key in
        message.withBytes { message in
          guard let length = CInt(exactly: key.count) else { return }
          isDone =
            hmac(
              sha256(), key.baseAddress, length, Self.bytes(message), message.count,
              Self.bytes(result), nil) != nil
        }
      }
    }
    guard isDone else { throw Failed() }
    return result
  }

  /// Encrypts `content` into `target`, which must have room for it and for the tag behind it.
  func seal(
    _ content: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, key: SecretBytes,
    nonce: [UInt8], authenticating context: [UInt8]
  ) throws(Failed) {
    guard target.count == content.count + Self.tagLength else { throw Failed() }
    try withCipher(key, nonce: nonce, context: context, encrypts: true) { cipher throws(Failed) in
      try update(cipher, with: content, into: target.baseAddress)
      try finish(cipher)
      let tag = target.baseAddress.map { $0 + content.count }
      try check(control(cipher, Self.getTag, CInt(Self.tagLength), tag))
    }
  }

  /// Decrypts `sealed` in place, without its last 16 bytes, which are the tag. If the data isn't
  /// what was sealed, it is erased.
  func open(
    _ sealed: UnsafeMutableRawBufferPointer, key: SecretBytes, nonce: [UInt8],
    authenticating context: [UInt8]
  ) throws(Failed) {
    guard let start = sealed.baseAddress, sealed.count >= Self.tagLength else { throw Failed() }
    let length = sealed.count - Self.tagLength
    do throws(Failed) {
      try withCipher(key, nonce: nonce, context: context, encrypts: false) {
        cipher throws(Failed) in
        try check(control(cipher, Self.setTag, CInt(Self.tagLength), start + length))
        try update(cipher, with: UnsafeRawBufferPointer(start: start, count: length), into: start)
        do throws(Failed) { try finish(cipher) } catch { throw Failed(isOfData: true) }
      }
    } catch {
      // The data isn't authenticated, so it is erased: it must not be used, not even by mistake.
      explicit_bzero(start, length)
      throw error
    }
  }

  /// Checks the functions with known answers: NIST's 14th case of AES-GCM, and RFC 4231's second
  /// case of HMAC.
  private func passesSelfTest() -> Bool {
    let expected: [UInt8] = [
      0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d,
      0x18,
      0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9,
      0x19,
    ]
    let zeros = [UInt8](repeating: 0, count: 16)
    var sealed = [UInt8](repeating: 0, count: expected.count)
    let isSealed = zeros.withUnsafeBytes { zeros in
      sealed.withUnsafeMutableBytes { sealed in
        do throws(Failed) {
          try seal(
            zeros, into: sealed, key: SecretBytes(count: 32) { _ in },
            nonce: [UInt8](repeating: 0, count: 12), authenticating: [])
        } catch { return false }
        return true
      }
    }
    let key = Array("Jefe".utf8)
    let message = Array("what do ya want for nothing?".utf8)
    let start: [UInt8] = [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]
    do throws(Failed) {
      let digest = try hmacSHA256(
        key: SecretBytes(count: key.count) { $0.copyBytes(from: key) },
        SecretBytes(count: message.count) { $0.copyBytes(from: message) })
      return isSealed && sealed == expected && digest.withBytes { $0.starts(with: start) }
    } catch { return false }
  }

  /// Calls `body` with a cipher. To free the cipher's context wipes the key schedule in it.
  private func withCipher(
    _ key: SecretBytes, nonce: [UInt8], context: [UInt8], encrypts: Bool,
    _ body: (OpaquePointer) throws(Failed) -> Void
  ) throws(Failed) {
    guard key.count == 32, nonce.count == 12, let cipher = newContext() else { throw Failed() }
    defer { freeContext(cipher) }
    let result = key.withBytes { key in
      cipherInit(
        cipher, aes256GCM(), nil, Self.bytes(key), nonce,
        encrypts ? 1 : 0)
    }
    try check(result)
    let authenticated = context.withUnsafeBytes { context in
      do throws(Failed) { try update(cipher, with: context, into: nil) } catch { return false }
      return true
    }
    guard authenticated else { throw Failed() }
    try body(cipher)
  }

  /// Adds data to a cipher. `target` is `nil` for data that is authenticated only.
  private func update(
    _ cipher: OpaquePointer, with content: UnsafeRawBufferPointer,
    into target: UnsafeMutableRawPointer?
  ) throws(Failed) {
    if content.isEmpty { return }
    guard let length = CInt(exactly: content.count) else { throw Failed() }
    var written: CInt = 0
    try check(
      cipherUpdate(
        cipher, target?.assumingMemoryBound(to: UInt8.self), &written,
        Self.bytes(content), length))
    guard written == length else { throw Failed() }
  }

  /// Ends a cipher. GCM has no block left to write at the end; the call gets room for one anyway.
  private func finish(_ cipher: OpaquePointer) throws(Failed) {
    var block: (UInt64, UInt64) = (0, 0)
    var written: CInt = 0
    let result = withUnsafeMutableBytes(of: &block) { block in
      cipherFinal(cipher, Self.bytes(block), &written)
    }
    try check(result)
  }

  private static func bytes(_ buffer: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
    buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
  }

  private static func bytes(
    _ buffer: UnsafeMutableRawBufferPointer
  ) -> UnsafeMutablePointer<UInt8>? {
    buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
  }

  private func check(_ result: CInt) throws(Failed) { if result != 1 { throw Failed() } }
}

/// The reason why images can't be encrypted here.
public enum CryptoLibraryError: Error, Sendable, CustomStringConvertible {
  case missing(String, reason: String)
  case incomplete(String, symbol: String)

  public var description: String { "\(reason); install OpenSSL 3 (Debian: libssl3)" }

  /// What failed, and the reason. It doesn't include what to do.
  public var reason: String {
    switch self {
    case .missing(let name, let reason): "can't load OpenSSL's \(name): \(reason)"
    case .incomplete(let name, let symbol):
      "can't use OpenSSL's \(name): \(symbol) isn't in it, or fails"
    }
  }
}
