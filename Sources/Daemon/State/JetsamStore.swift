import Control
import Linux

/// The jetsam reports on disk. Each is a JSON file, and the newest `maxKept` are kept.
struct JetsamStore: Sendable {
  let directory: String
  static let maxKept = 100

  /// The ids of the reports, the newest first. Ids begin with the time, so they sort by age.
  func ids() -> [String] {
    let names = (try? listDirectory(directory)) ?? []
    return names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted(by: >)
  }

  func load(_ id: String) -> JetsamRecord? {
    // An id comes from a client. It must not name a file outside of this directory.
    guard !id.contains("/"), !id.hasPrefix("."),
      let bytes = try? readFile("\(directory)/\(id).json")
    else { return nil }
    // A damaged report counts as missing.
    return try? WireCodec.decode(JetsamRecord.self, from: bytes)
  }

  func save(_ record: JetsamRecord) throws {
    let bytes = try WireCodec.json(for: record) + [10]
    try StateFile.replace("\(directory)/\(record.id).json", with: bytes, durability: .none)
    for old in ids().dropFirst(Self.maxKept) { discardFile("\(directory)/\(old).json") }
  }
}
