import Control
import Glibc
import JSONLines
import Linux
import WorkerProtocol

/// What workers want to be shown while they sleep, a file each: the MIME type and a line end, then the
/// content as it is. On disk, because the daemon must stay small; as small as a line of the protocol.
struct SnapshotStore {
  let directory: String

  struct Snapshot: Hashable {
    var mime: String
    var content: [UInt8]
    var isText: Bool { mime == SnapshotStore.text }
  }

  static let text = "text/plain"
  private static let longestType = 100

  private func path(_ name: String) -> String { "\(directory)/\(CgroupRoot.sanitised(name))" }

  /// Replaces the one that was there. Returns what is wrong with it, for the worker; a disk that fails
  /// is thrown.
  func keep(
    _ message: WorkerMessage.Snapshot, of name: String
  ) throws(SystemCallError) -> String? {
    let snapshot: Snapshot
    switch message {
    case .text(let text): snapshot = Snapshot(mime: Self.text, content: Array(text.utf8))
    case .image(let mime, let base64):
      guard Self.isType(mime) else { return "`snapshot`: `mime` is no MIME type" }
      guard let content = Base64.decode(base64) else { return "`snapshot`: `data` isn't base64" }
      snapshot = Snapshot(mime: mime, content: content)
    }
    let path = path(name)
    let temporary = path + "~"
    do throws(SystemCallError) {
      let file = try Descriptor.open(
        temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
      let bytes = Array(snapshot.mime.utf8) + [UInt8(ascii: "\n")] + snapshot.content
      var failure: SystemCallError?
      bytes.withUnsafeBytes { bytes in
        do throws(SystemCallError) { try file.writeAll(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
      // No fsync: neither it nor the worker outlives the boot.
      try renameFile(temporary, to: path)
    } catch {
      unlink(temporary)
      throw error
    }
    return nil
  }

  func load(_ name: String) -> Snapshot? {
    guard let bytes = try? readFile(path(name)),
      let end = bytes.prefix(Self.longestType + 1).firstIndex(of: UInt8(ascii: "\n"))
    else { return nil }
    return Snapshot(
      mime: String(decoding: bytes[..<end], as: UTF8.self), content: Array(bytes[(end + 1)...]))
  }

  func remove(_ name: String) { unlink(path(name)) }

  /// What is left of workers that are gone.
  func removeAll(where isGone: (String) -> Bool) {
    for name in (try? listDirectory(directory)) ?? [] {
      let worker = name.hasSuffix("~") ? String(name.dropLast()) : name
      if name.hasSuffix("~") || isGone(worker) { unlink("\(directory)/\(name)") }
    }
  }

  /// `type/subtype`, with nothing in it that could do harm where it is shown.
  private static func isType(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let isToken = { (part: Substring) in
      !part.isEmpty
        && part.utf8.allSatisfy {
          (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
            || Array("+-.".utf8).contains($0)
        }
    }
    return text.utf8.count <= longestType && parts.count == 2 && parts.allSatisfy(isToken)
  }
}

extension Daemon {
  /// What is wrong with it, for the worker.
  func keep(_ snapshot: WorkerMessage.Snapshot, of runtime: WorkerRuntime) -> String? {
    do throws(SystemCallError) {
      return try snapshots.keep(snapshot, of: runtime.id.name)
    } catch {
      log(.warning, "\(runtime.id): its snapshot can't be kept: \(error)")
      return nil
    }
  }
}
