import JSONLines
import Linux
import Policy
import WorkerProtocol

/// A snapshot that a worker wants to be shown while it sleeps. It is at most as long as a line of
/// the protocol.
struct SleepSnapshot: Hashable, Sendable {
  var mime: String
  var content: [UInt8]
  var isText: Bool { mime == Self.text }

  private static let text = "text/plain"
  private static let maxType = 100
}

extension SleepSnapshot {
  /// Reads a worker's message.
  ///
  /// - Throws: what is wrong with the message, for the worker.
  init(_ message: WorkerMessage.Snapshot) throws(Refusal) {
    switch message {
    case .text(let text): self.init(mime: Self.text, content: Array(text.utf8))
    case .image(let mime, let base64):
      guard Self.isType(mime) else { throw Refusal(text: "`snapshot`: `mime` is not a MIME type") }
      guard let content = Base64.decode(base64) else {
        throw Refusal(text: "`snapshot`: `data` is not base64")
      }
      self.init(mime: mime, content: content)
    }
  }

  /// Reads a file. A snapshot that can't be read counts as missing.
  fileprivate init?(path: String) {
    guard let bytes = try? readFile(path),
      let end = bytes.prefix(Self.maxType + 1).firstIndex(of: UInt8(ascii: "\n"))
    else { return nil }
    self.init(
      mime: String(decoding: bytes[..<end], as: UTF8.self), content: Array(bytes[(end + 1)...]))
  }

  /// Whether a text has the form `type/subtype`, with no character that could do harm where it is
  /// shown.
  private static func isType(_ text: String) -> Bool {
    let tokens = text.split(separator: "/", omittingEmptySubsequences: false)
    let isToken = { (token: Substring) in
      !token.isEmpty
        && token.utf8.allSatisfy {
          (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
            || Array("+-.".utf8).contains($0)
        }
    }
    return text.utf8.count <= maxType && tokens.count == 2 && tokens.allSatisfy(isToken)
  }
}

/// Keeps each worker's last snapshot in a file: the MIME type, a line end, and then the content as
/// it is. They are on disk because the daemon must stay small. At most one a second is written for
/// each worker, after a burst of `burst`. If a worker sends more than that, only the latest is
/// written.
final class SnapshotKeeper {
  private let directory: String
  private let disk: WorkQueue
  private let loop: LoopReturn
  private let log: DaemonLog
  /// By worker, the latest snapshot that isn't written yet.
  private var latest: [String: SleepSnapshot] = [:]
  /// By worker, the time up to which its allowance of writes is used.
  private var paidUntil: [String: Instant] = [:]

  /// The minimum time between two writes of a worker, after the burst.
  static let interval = Duration.seconds(1)
  /// The number of writes that may follow each other without a pause.
  static let burst = 4
  /// The suffix of a file that is being written. No worker's name ends with it.
  private static let partialSuffix = "~"

  init(directory: String, disk: WorkQueue, loop: LoopReturn, log: DaemonLog) {
    self.directory = directory
    self.disk = disk
    self.loop = loop
    self.log = log
  }

  private func path(of name: String) -> String { "\(directory)/\(CgroupRoot.sanitised(name))" }

  /// Keeps a worker's snapshot.
  ///
  /// - Returns: the time after which `writeWaiting` must be called; nil if the snapshot is being
  ///   written or that call is already scheduled.
  func keep(
    _ message: WorkerMessage.Snapshot, of name: String, at now: Instant
  ) throws(Refusal) -> Duration? {
    let isWaiting = latest[name] != nil
    latest[name] = try SleepSnapshot(message)
    if isWaiting { return nil }
    let wait = paidUntil[name].map { $0 - now - Self.interval * (Self.burst - 1) } ?? .zero
    if wait > .zero { return wait }
    writeWaiting(of: name, at: now)
    return nil
  }

  /// Writes the latest snapshot to the disk.
  func writeWaiting(of name: String, at now: Instant) {
    guard let snapshot = latest.removeValue(forKey: name) else { return }
    paidUntil[name] = max(now, paidUntil[name] ?? now) + Self.interval
    let path = path(of: name)
    disk.write("\(name): can't write its snapshot", log) {
      let bytes = Array(snapshot.mime.utf8) + [UInt8(ascii: "\n")] + snapshot.content
      // There is no fsync: neither the snapshot nor the worker outlives the boot.
      try StateFile.replace(
        path, with: bytes, durability: .none, partialSuffix: SnapshotKeeper.partialSuffix)
    }
  }

  /// Reads a worker's snapshot. `then` is called later, on the event loop, with what was kept
  /// before this call.
  func load(_ name: String, then: @escaping (SleepSnapshot?) -> Void) {
    let (waiting, path) = (latest[name], path(of: name))
    let done: @Sendable (SleepSnapshot?) -> Void = loop.callback(then)
    disk.submit { done(waiting ?? SleepSnapshot(path: path)) }
  }

  func remove(_ name: String) {
    latest[name] = nil
    paidUntil[name] = nil
    let path = path(of: name)
    disk.submit { discardFile(path) }
  }

  /// Removes the snapshots of workers that don't exist any more, when the daemon starts. The names
  /// have the form that names of files have.
  func removeAll(where isGone: (String) -> Bool) {
    for name in (try? listDirectory(directory)) ?? [] {
      let isPartial = name.hasSuffix(Self.partialSuffix)
      if isPartial || isGone(name) { discardFile("\(directory)/\(name)") }
    }
  }
}
