import JSONLines
import Linux
import Policy
import WorkerProtocol

/// The snapshots that workers want to be shown while they sleep. Each is a file: the MIME type, a
/// line end, and then the content as it is. They are on disk because the daemon must stay small. A
/// snapshot is at most as long as a line of the protocol.
struct SnapshotStore: Sendable {
  let directory: String

  struct Snapshot: Hashable, Sendable {
    var mime: String
    var content: [UInt8]
    var isText: Bool { mime == SnapshotStore.text }
  }

  static let text = "text/plain"
  private static let maxType = 100

  private func path(_ name: String) -> String { "\(directory)/\(CgroupRoot.sanitised(name))" }

  /// Reads a worker's message.
  ///
  /// - Throws: what is wrong with the message, for the worker.
  static func read(_ message: WorkerMessage.Snapshot) throws(Refusal) -> Snapshot {
    switch message {
    case .text(let text): return Snapshot(mime: Self.text, content: Array(text.utf8))
    case .image(let mime, let base64):
      guard Self.isType(mime) else { throw Refusal(text: "`snapshot`: `mime` is not a MIME type") }
      guard let content = Base64.decode(base64) else {
        throw Refusal(text: "`snapshot`: `data` is not base64")
      }
      return Snapshot(mime: mime, content: content)
    }
  }

  /// Saves a worker's snapshot in place of the last one. Call it on a thread that may wait for the
  /// disk.
  func keep(_ snapshot: Snapshot, of name: String) throws(SystemCallError) {
    let bytes = Array(snapshot.mime.utf8) + [UInt8(ascii: "\n")] + snapshot.content
    // There is no fsync: neither the snapshot nor the worker outlives the boot.
    try StateFile.replace(
      path(name), with: bytes, durability: .none, partialSuffix: Self.partialSuffix)
  }

  /// The suffix of a file that is being written. No worker's name ends with it.
  private static let partialSuffix = "~"

  func load(_ name: String) -> Snapshot? {
    // A snapshot that can't be read counts as missing.
    guard let bytes = try? readFile(path(name)),
      let end = bytes.prefix(Self.maxType + 1).firstIndex(of: UInt8(ascii: "\n"))
    else { return nil }
    return Snapshot(
      mime: String(decoding: bytes[..<end], as: UTF8.self), content: Array(bytes[(end + 1)...]))
  }

  func remove(_ name: String) { discardFile(path(name)) }

  /// Removes the snapshots of workers that don't exist any more.
  func removeAll(where isGone: (String) -> Bool) {
    for name in (try? listDirectory(directory)) ?? [] {
      let isPartial = name.hasSuffix(Self.partialSuffix)
      if isPartial || isGone(name) { discardFile("\(directory)/\(name)") }
    }
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

/// Writes snapshots to the disk: at most one a second for each worker, after a burst of `burst`. If
/// a worker sends more than that, only the latest is written.
final class SnapshotKeeper {
  private let store: SnapshotStore
  private let disk: WorkQueue
  private let loop: LoopReturn
  private let log: DaemonLog
  /// By worker, the latest snapshot that isn't written yet.
  private var latest: [String: SnapshotStore.Snapshot] = [:]
  /// By worker, the time up to which its allowance of writes is used.
  private var paidUntil: [String: Instant] = [:]

  /// The minimum time between two writes of a worker, after the burst.
  static let interval = Duration.seconds(1)
  /// The number of writes that may follow each other without a pause.
  static let burst = 4

  init(directory: String, disk: WorkQueue, loop: LoopReturn, log: DaemonLog) {
    store = SnapshotStore(directory: directory)
    self.disk = disk
    self.loop = loop
    self.log = log
  }

  /// Keeps a worker's snapshot.
  ///
  /// - Returns: the time after which `writeWaiting` must be called; nil if the snapshot is being
  ///   written or that call is already scheduled.
  func keep(
    _ message: WorkerMessage.Snapshot, of name: String, at now: Instant
  ) throws(Refusal) -> Duration? {
    let isWaiting = latest[name] != nil
    latest[name] = try SnapshotStore.read(message)
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
    disk.write("\(name): can't write its snapshot", log) { [store] in
      try store.keep(snapshot, of: name)
    }
  }

  /// Reads a worker's snapshot. `then` is called later, on the event loop, with what was kept
  /// before this call.
  func load(_ name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    let waiting = latest[name]
    let done: @Sendable (SnapshotStore.Snapshot?) -> Void = loop.callback(then)
    disk.submit { [store] in done(waiting ?? store.load(name)) }
  }

  func remove(_ name: String) {
    latest[name] = nil
    paidUntil[name] = nil
    disk.submit { [store] in store.remove(name) }
  }

  /// Removes snapshots when the daemon starts.
  func removeAll(where isGone: (String) -> Bool) { store.removeAll(where: isGone) }
}
