import Glibc

/// The bytes of a key. They stay at one address, and are wiped before that memory is freed.
///
/// Unchecked: the bytes are written in the initialisers only, before another thread can access the
/// object.
final class SecretBytes: @unchecked Sendable {
  private let storage: UnsafeMutableRawBufferPointer

  var count: Int { storage.count }

  /// Allocates `count` bytes of zeros and lets `fill` write the key to them.
  init<Failure>(
    count: Int, fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    storage = .allocate(byteCount: count, alignment: 16)
    storage.initializeMemory(as: UInt8.self, repeating: 0)
    try fill(storage)
  }

  /// Random bytes from the kernel's generator (getrandom(2)).
  convenience init(randomCount count: Int) {
    self.init(count: count) { bytes in
      var random = SystemRandomNumberGenerator()
      for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255, using: &random) }
    }
  }

  deinit {
    if let start = storage.baseAddress { explicit_bzero(start, storage.count) }
    storage.deallocate()
  }

  func withBytes<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(storage))
  }
}

extension SecretBytes: Equatable {
  static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    guard left.count == right.count else { return false }
    // This takes the same time wherever the bytes differ.
    return zip(left.storage, right.storage).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
