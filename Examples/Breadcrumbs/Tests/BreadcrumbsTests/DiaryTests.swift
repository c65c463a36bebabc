import Glibc
import Testing

@testable import Breadcrumbs

/// A directory of a test's own.
private final class Directory {
  let path: String

  init() throws {
    var template = Array("/tmp/breadcrumbs-XXXXXX\0".utf8CString)
    guard mkdtemp(&template) != nil else { throw PhotoError(description: "mkdtemp") }
    path = String(
      decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    unlink("\(path)/journal.sqlite")
    rmdir(path)
  }
}

@Suite("The journal") struct JournalTests {
  @Test("The journal keeps the screen's state and edits byte for byte")
  func restoration() throws {
    let directory = try Directory()
    let file = "\(directory.path)/journal.sqlite"
    let kept = Restoration(
      shown: 3, slide: 7, drafts: [3: "quote ' and “ä”\n", 5: "; DROP TABLE entries"])
    do {
      let journal = try Journal(path: file)
      #expect(try journal.restoration() == Restoration())
      #expect(try journal.entries() == Entry.first)
      try journal.keep(kept)
    }
    let journal = try Journal(path: file)
    #expect(try journal.restoration() == kept)
    try journal.save("; DROP TABLE entries", for: 5)
    #expect(try journal.entry(5)?.text == "; DROP TABLE entries")
    #expect(try journal.restoration().drafts.keys.sorted() == [3])
    #expect(try journal.entry(11) == nil)
  }

  @Test("A journal that can't be opened gives an error with its path")
  func unopened() throws {
    let error = #expect(throws: SQLiteError.self) { try Journal(path: "/nowhere/x") }
    #expect(error?.description.contains("/nowhere/x") == true)
  }
}

@Suite("Photos") struct PhotoTests {
  @Test("Photos are the same each time they are painted and decoded, at any size")
  func repeatable() throws {
    let scene = try #require(Scene.all.first)
    let one = Landscape.bitmap(scene, seed: 1, width: 80, height: 60)
    #expect(one.digest == Landscape.bitmap(scene, seed: 1, width: 80, height: 60).digest)
    #expect(one.digest != Landscape.bitmap(scene, seed: 2, width: 80, height: 60).digest)
    let data = try JPEG.encode(one, quality: 88)
    for (eighths, width) in [(8, 80), (16, 160), (4, 40), (1, 10)] {
      let decoded = try JPEG.decode(data, eighths: eighths)
      #expect(decoded.width == width)
      #expect(decoded.byteCount == width * decoded.height * 4)
      #expect(try JPEG.decode(data, eighths: eighths).digest == decoded.digest)
    }
  }

  @Test("A damaged or missing photo is an error and gives no picture")
  func damaged() throws {
    #expect(throws: JPEGError.self) { try JPEG.decode([]) }
    #expect(throws: JPEGError.self) { try JPEG.decode([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]) }
    #expect(throws: PhotoError.self) { try Album(directory: "/nowhere").photo(1) }
  }
}
