import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The lists of an image's index in memory.
struct PackedIndexTests {
  @Test func `Packed ranges are those that were appended, up to the longest of a chunk`() {
    var lists = RangeLists()
    let ranges = [
      [PageRange(address: 0x7fff_ffff_0000, length: UInt64(ImageLayout.chunkLength))], [],
      [
        PageRange(address: 0, length: pageSize), PageRange(address: 1 << 62, length: 2 * pageSize),
      ],
    ]
    for list in ranges { lists.append(list) }
    #expect((0..<lists.count).map { lists[$0] } == ranges)
  }

  @Test func `Lists that were dropped are read again, for all copies of the reader`() throws {
    let path = try ImageFormatTests.image(chunks: 3)
    let image = try ImageReader(path: path)
    let copy = image
    let before = image.steps.map(\.ranges)
    image.dropLists()
    #expect(!copy.lists.areLoaded)
    // The descriptor is open, so the name doesn't matter.
    unlink(path)
    try image.loadLists()
    #expect(copy.lists.areLoaded)
    #expect(copy.steps.map(\.ranges) == before)
    // Another thread may have dropped them just before their use.
    image.dropLists()
    #expect(copy.steps.map(\.ranges) == before)
    #expect(copy.chunks.map(\.storedLength).allSatisfy { $0 > 0 })
    try copy.verify()
  }

  @Test func `Dropped lists aren't read again from an index that has changed`() throws {
    let path = try ImageFormatTests.image(chunks: 3)
    let image = try ImageReader(path: path)
    image.dropLists()
    var file = try readFile(path)
    file[ImageFormatTests.Header(file).indexOffset + 40] ^= 1
    try ImageFormatTests.write(file, to: path)
    let error = #expect(throws: ImageError.self) { try image.loadLists() }
    #expect(error?.description.contains("damaged") == true)
    #expect(!image.lists.areLoaded)
  }
}
