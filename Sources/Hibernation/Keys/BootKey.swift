import CLinux
import Glibc
import Linux
import Synchronization

/// The key under which images are sealed: 32 random bytes in the kernel's user keyring, one for each
/// directory of images. A restarted daemon of the same user finds it, whatever session it is started
/// in; nobody else can read it; it goes when the machine does, as the images' processes do.
///
/// Not the persistent keyring (persistent-keyring(7)), for that expires after some days without use,
/// and a worker may sleep longer.
public enum BootKey {
  private static let length = 32

  /// Those that this process has used. What happens to the keyring can't take them away from us; it
  /// could from the next daemon, so they are put back when they are found missing.
  private static let known = Mutex<[String: SecretBytes]>([:])

  /// The key for new images in a directory; made where there is none.
  static func forSealing(in directory: String) throws(BootKeyError) -> SecretBytes {
    let name = try name(of: directory)
    if let key = try read(name) { return key }
    let key = known.withLock { $0[name] } ?? SecretBytes(randomCount: length)
    try add(key, name)
    // What a later daemon would find.
    guard let stored = try read(name) else { throw .missing }
    return stored
  }

  /// The key of images that are there.
  static func forOpening(in directory: String) throws(BootKeyError) -> SecretBytes {
    let name = try name(of: directory)
    if let key = known.withLock({ $0[name] }) { return key }
    guard let key = try read(name) else { throw .missing }
    return key
  }

  /// Takes the key of a directory away in which there is no image any more. Does nothing where this
  /// process hasn't used it.
  public static func discard(in directory: String) {
    guard let name = try? name(of: directory),
      known.withLock({ $0.removeValue(forKey: name) }) != nil
    else { return }
    _ = clinux_key_remove(name)
  }

  /// Whether a key can be kept here: tries it, with one that goes again.
  public static func tryKeyring() throws(BootKeyError) {
    let name = "dormouse:doctor:\(getpid())"
    defer { _ = clinux_key_remove(name) }
    let key = SecretBytes(randomCount: length)
    try add(key, name)
    guard try read(name) == key else { throw .missing }
    known.withLock { _ = $0.removeValue(forKey: name) }
  }

  /// By the directory that is meant, however it is spelt.
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
    known.withLock { $0[name] = key }
    return key
  }
}

/// Why there is no key.
public enum BootKeyError: Error, Sendable, CustomStringConvertible {
  /// Gone from the keyring: it was cleared, or belongs to another user.
  case missing
  /// It might be there.
  case unusable(SystemCallError)

  public var description: String {
    switch self {
    case .missing: "its key is not in the kernel's keyring any more"
    case .unusable(let error): "the kernel's keyring can't be used: \(error)"
    }
  }
}
