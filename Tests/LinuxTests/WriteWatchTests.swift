import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Writes that the kernel reports") struct WriteWatchTests {
  private let scratch: Scratch
  private let watch: WriteWatch

  init() throws {
    scratch = try Scratch()
    watch = try WriteWatch()
  }

  private func open(_ name: String) throws -> (path: String, file: Descriptor) {
    let path = scratch.path + "/" + name
    return (path, try Descriptor.open(path, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
  }

  @Test("The next write to a file is reported once, and a further one only if it is watched again")
  func once() throws {
    let (path, file) = try open("log")
    try file.writeAll("before")
    let first = try watch.addWatch(to: path, followsLinks: false)
    #expect(watch.readReports() == .init())
    #expect(try watch.addWatch(to: path, followsLinks: false) == first, "it is awaited already")
    try file.writeAll("a")
    try file.writeAll("b")
    #expect(watch.readReports() == .init(written: [first], ended: [first]))
    let second = try watch.addWatch(to: path, followsLinks: false)
    try file.writeAll("c")
    #expect(watch.readReports() == .init(written: [second], ended: [second]))
  }

  @Test func `Each of several files has its own number`() throws {
    let (web, db) = (try open("web"), try open("db"))
    let first = try watch.addWatch(to: web.path, followsLinks: false)
    let second = try watch.addWatch(to: db.path, followsLinks: false)
    try db.file.writeAll("a")
    #expect(watch.readReports() == .init(written: [second], ended: [second]))
    try web.file.writeAll("a")
    #expect(watch.readReports() == .init(written: [first], ended: [first]))
  }

  @Test("A file that isn't watched any more, or was removed, is only reported as ended")
  func dropped() throws {
    let (web, db) = (try open("web"), try open("db"))
    let first = try watch.addWatch(to: web.path, followsLinks: false)
    watch.removeWatch(first)
    try web.file.writeAll("a")
    #expect(watch.readReports() == .init(ended: [first]))
    let second = try watch.addWatch(to: db.path, followsLinks: false)
    try removeFile(db.path)
    _ = db
    #expect(watch.readReports().written == [])
    watch.removeWatch(second)
  }

  @Test func `A link is followed only if that is requested`() throws {
    let (path, file) = try open("log")
    let link = scratch.path + "/link"
    #expect(symlink(path, link) == 0)
    _ = try watch.addWatch(to: link, followsLinks: false)
    try file.writeAll("a")
    #expect(watch.readReports() == .init())
    let number = try watch.addWatch(to: link, followsLinks: true)
    try file.writeAll("b")
    #expect(watch.readReports() == .init(written: [number], ended: [number]))
  }
}
