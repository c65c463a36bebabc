import Control
import Glibc
import Linux

/// Jetsam reports on disk: one JSON file each, the newest `maxKept` of them.
struct JetsamStore: Sendable {
  let directory: String
  static let maxKept = 100

  /// The newest first; ids begin with the time, so that is their order.
  func ids() -> [String] {
    let names = (try? listDirectory(directory)) ?? []
    return names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted(by: >)
  }

  func load(_ id: String) -> JetsamRecord? {
    // An id comes from a client: it must stay a file of this directory.
    guard !id.contains("/"), !id.hasPrefix("."),
      let bytes = try? readFile("\(directory)/\(id).json")
    else { return nil }
    // nil: it is damaged.
    return try? WireCodec.decode(JetsamRecord.self, from: bytes)
  }

  func save(_ record: JetsamRecord) throws {
    let bytes = try WireCodec.json(for: record) + [10]
    try StateFile.replace("\(directory)/\(record.id).json", with: bytes, durability: .none)
    for old in ids().dropFirst(Self.maxKept) { discardFile("\(directory)/\(old).json") }
  }
}

/// The known reports, without a look at the disk: those that were found at the daemon's start, and those made
/// since.
struct JetsamReports: Sendable {
  let store: JetsamStore
  /// The newest first.
  private(set) var ids: [String]

  init(directory: String) {
    store = JetsamStore(directory: directory)
    ids = store.ids()
  }

  /// The time without punctuation, and a number where one second has several.
  func newID(at time: String) -> String {
    let base = time.filter { $0.isNumber || $0 == "T" }
    let taken = Set(ids)
    if !taken.contains(base) { return base }
    return (2...).lazy.map { "\(base)-\($0)" }.first { !taken.contains($0) } ?? base
  }

  /// It is about to be written.
  mutating func keep(_ record: JetsamRecord) {
    ids = Array((ids + [record.id]).sorted(by: >).prefix(JetsamStore.maxKept))
  }
}
