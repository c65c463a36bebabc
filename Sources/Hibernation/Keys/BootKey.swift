import CLinux
import Glibc
import Linux
import Synchronization

/// The key under which images are sealed: 32 random bytes in the kernel's user keyring, one key for
/// each directory of images.
///
/// A restarted daemon of the same user finds the key, whatever session it is started in. Other
/// users can't read it. The key ends when the machine is shut down, as the images' processes do.
///
/// The persistent keyring (persistent-keyring(7)) isn't used, because it expires after some days
/// without use, and a worker may sleep longer. All functions may be called on any thread; none
/// waits for a disk.
public enum BootKey {
  private static let length = 32

  /// Keys that this process has used. It keeps them even if the keyring is cleared. The next daemon
  /// would miss them, so a missing key is put back into the keyring.
  private static let cachedKeys = Mutex<[String: SecretBytes]>([:])

  /// Returns the key for new images in a directory. The key is made if there is none.
  static func forSealing(in directory: String) throws(BootKeyError) -> SecretBytes {
    let name = try name(of: directory)
    if let key = try read(name) { return key }
    let key = cachedKeys.withLock { $0[name] } ?? SecretBytes(randomCount: length)
    try add(key, name)
    // This reads back what a later daemon would find.
    guard let stored = try read(name) else { throw .missing }
    return stored
  }

  /// Returns the key of the existing images in a directory.
  static func forOpening(in directory: String) throws(BootKeyError) -> SecretBytes {
    let name = try name(of: directory)
    if let key = cachedKeys.withLock({ $0[name] }) { return key }
    guard let key = try read(name) else { throw .missing }
    return key
  }

  /// Removes the key of a directory that has no image any more. It does nothing if this process
  /// hasn't used the key.
  public static func discard(in directory: String) {
    guard let name = try? name(of: directory),
      cachedKeys.withLock({ $0.removeValue(forKey: name) }) != nil
    else { return }
    _ = clinux_key_remove(name)
  }

  /// Checks that a key can be kept here: it stores one and removes it again.
  ///
  /// - Throws: the reason why it can't.
  public static func tryKeyring() throws(BootKeyError) {
    let name = "dormouse:doctor:\(getpid())"
    defer { _ = clinux_key_remove(name) }
    let key = SecretBytes(randomCount: length)
    try add(key, name)
    guard try read(name) == key else { throw .missing }
    cachedKeys.withLock { _ = $0.removeValue(forKey: name) }
  }

  /// Returns the key's name, which depends on the directory itself, not on how its path is spelt.
  private static func name(of directory: String) throws(BootKeyError) -> String {
    let resolved: UnsafeMutablePointer<CChar>
    do throws(SystemCallError) {
      resolved = try pointerCall("realpath", path: directory) { realpath($0, nil) }
    } catch { throw .unusable(error) }
    defer { free(resolved) }
    return "dormouse:" + String(cString: resolved)
  }

  private static func add(_ key: SecretBytes, _ name: String) throws(BootKeyError) {
    let result = key.withBytes { clinux_key_add(name, $0.baseAddress, Int64($0.count)) }
    if result < 0 { throw .unusable(SystemCallError("add_key", on: name, code: -result)) }
  }

  private static func read(_ name: String) throws(BootKeyError) -> SecretBytes? {
    var count: Int64 = 0
    let key = SecretBytes(count: length) {
      count = clinux_key_read(name, $0.baseAddress, Int64($0.count))
    }
    let code = Int32(truncatingIfNeeded: -count)
    if [ENOKEY, EKEYREVOKED, EKEYEXPIRED].contains(code) { return nil }
    if count < 0 { throw .unusable(SystemCallError("read the key", on: name, code: code)) }
    guard count == length else { return nil }
    cachedKeys.withLock { $0[name] = key }
    return key
  }
}

/// The reason why there is no key.
public enum BootKeyError: Error, Sendable, CustomStringConvertible {
  /// The keyring doesn't have the key: it was cleared, or belongs to another user.
  case missing
  /// The keyring can't be read, so the key may exist.
  case unusable(SystemCallError)

  public var description: String {
    switch self {
    case .missing: "its key is not in the kernel's keyring any more"
    case .unusable(let error): "the kernel's keyring can't be used: \(error)"
    }
  }
}
