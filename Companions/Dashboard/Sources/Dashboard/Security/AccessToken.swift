import Glibc
import Linux

/// A secret that each request must have.
public struct AccessToken: Hashable, Sendable {
  public let text: String

  /// A token of 256 random bits.
  public static func random() -> AccessToken {
    var generator = SystemRandomNumberGenerator()
    let digits = Array("0123456789abcdef")
    return AccessToken(
      text: String((0..<64).map { _ in digits[Int.random(in: 0..<16, using: &generator)] }))
  }

  init(text: String) { self.text = text }

  /// Compares in a time that doesn't depend on how much of `other` is right.
  func matches(_ other: some StringProtocol) -> Bool {
    let ours = Array(text.utf8)
    let theirs = Array(other.utf8)
    guard ours.count == theirs.count else { return false }
    return zip(ours, theirs).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  // MARK: in a file

  /// Returns the token in a file, which is created with a random one if it doesn't exist. So the
  /// address stays the same when the dashboard is started again, and other programs can read the
  /// token.
  public static func inFile(_ path: String) throws(AccessTokenError) -> AccessToken {
    let status: stat
    let text: String
    do throws(SystemCallError) {
      let file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
      status = try file.readStatus(path)
      text = String(decoding: try file.read(upTo: 4096), as: UTF8.self)
    } catch {
      guard error.code == ENOENT else { throw .system(error) }
      return try made(path)
    }
    guard status.isRegularFile else { throw .notAFile(path) }
    guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else { throw .notPrivate(path) }
    return try parsed(text, path)
  }

  static func parsed(_ text: String, _ path: String) throws(AccessTokenError) -> AccessToken {
    let word = text.prefix { !$0.isWhitespace }
    let isPlain = word.utf8.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    guard word.count >= 32, isPlain else { throw .weak(path) }
    return AccessToken(text: String(word))
  }

  private static func made(_ path: String) throws(AccessTokenError) -> AccessToken {
    let token = random()
    do throws(SystemCallError) {
      let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try file.writeAll(token.text + "\n")
    } catch { throw .system(error) }
    return token
  }
}

public enum AccessTokenError: Error, Hashable, Sendable, CustomStringConvertible {
  case notAFile(String)
  case notPrivate(String)
  case weak(String)
  case system(SystemCallError)

  public var description: String {
    switch self {
    case .notAFile(let path): "--token-file: \(path) is not a file"
    case .notPrivate(let path):
      "--token-file: other users may read \(path), or it belongs to another user; `chmod 600` it"
    case .weak(let path):
      "--token-file: \(path) needs a word of at least 32 letters, digits and `-`; remove the file, "
        + "and "
        + "the dashboard makes a random one"
    case .system(let error): "--token-file: \(error)"
    }
  }
}
