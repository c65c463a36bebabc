import Control
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("Jetsam reports on disk") struct JetsamStoreTests {
  private let scratch: Scratch
  private let store: JetsamStore

  init() throws {
    scratch = try Scratch()
    store = JetsamStore(directory: "\(scratch.path)/jetsam")
  }

  private func record(_ id: String) -> JetsamRecord {
    JetsamRecord(
      id: id, time: "2026-11-22T12:00:00Z", policy: "test", level: "critical",
      why: CodedText("pressure", "the machine has no memory left"), budget: 100,
      availableBefore: 1, availableAfter: 2, largest: nil, workers: [], host: nil)
  }

  private func id(_ number: Int) -> String { "20261122T12\(1000 + number)" }

  @Test func `The newest 100 reports are kept, the newest first, and other files stay`() throws {
    try scratch.write("jetsam/notes.txt", "")
    for number in 0..<103 { try store.save(record(id(number))) }
    #expect(store.ids() == (3..<103).reversed().map(id))
    #expect(store.load(id(2)) == nil && store.load(id(3))?.id == id(3))
    #expect(fileExists("\(scratch.path)/jetsam/notes.txt"))
  }

  @Test func `A damaged report, and one in another directory, isn't found`() throws {
    try scratch.write("jetsam/20261122T120000.json", "{")
    try scratch.write("other.json", "{}")
    try store.save(record(id(1)))
    #expect(store.load("20261122T120000") == nil)
    for id in ["../other", "", ".", "..", ".hidden", "none"] { #expect(store.load(id) == nil) }
    #expect(store.load(id(1)) != nil)
  }

  @Test(
    "A directory that can't be read has no reports, and a report that can't be written is an error")
  func failing() {
    #expect(store.ids().isEmpty)
    #expect(throws: SystemCallError.self) { try store.save(record(id(1))) }
  }
}
