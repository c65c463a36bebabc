import Checksum
import Glibc
import Linux

/// The first 64 bytes of the file.
struct ImageHeader {
  var fileLength: UInt64
  var indexOffset: UInt64
  var indexLength: Int
  var indexChecksum: UInt32
  var progress: ImageProgress
  /// All 64 bytes.
  let bytes: [UInt8]

  /// Returns the seal of an encrypted image, or `nil` if the image isn't encrypted.
  func seal(at path: String) throws(ImageError) -> Seal? {
    guard bytes[10] & 1 == 1 else { return nil }
    do throws(SealError) { return try Seal.of(Array(bytes[40..<56]), at: path) } catch {
      throw .locked(path: path, error)
    }
  }

  init(path: String, file: Descriptor) throws(ImageError) {
    let actual = UInt64(max(0, lseek(file.raw, 0, SEEK_END)))
    guard actual >= UInt64(ImageLayout.headerLength) else {
      throw actual == 0
        ? .truncated(path: path, expected: UInt64(ImageLayout.headerLength), actual: 0)
        : .notAnImage(path: path)
    }
    bytes = try readExactly(file, path, at: 0, count: ImageLayout.headerLength)
    guard Array(bytes[..<8]) == ImageLayout.magic else { throw .notAnImage(path: path) }
    let fields: Fields
    do throws(ByteReader.Exhausted) {
      fields = try Fields(bytes[8...])
    } catch { throw .notAnImage(path: path) }

    // The version is checked first: a later version may compute the checksum differently.
    try ImageMachine.check(version: fields.version, of: path)
    let covered = bytes[..<(ImageLayout.progressOffset - 4)]
    guard CRC32.castagnoli.checksum(of: covered) == fields.checksum else {
      throw .damaged(path: path, reason: "its header has a wrong checksum")
    }
    guard let progress = ImageProgress(rawValue: fields.progress) else {
      throw .damaged(path: path, reason: "its header has an unknown progress")
    }
    guard actual == fields.fileLength else {
      throw .truncated(path: path, expected: fields.fileLength, actual: actual)
    }
    let end = fields.indexOffset.addingReportingOverflow(fields.indexLength)
    guard !end.overflow, end.partialValue == fields.fileLength,
      fields.indexLength <= ImageLayout.maximumIndexLength
    else { throw .damaged(path: path, reason: "its index lies outside the file") }

    fileLength = fields.fileLength
    indexOffset = fields.indexOffset
    indexLength = Int(fields.indexLength)
    indexChecksum = fields.indexChecksum
    self.progress = progress
  }

  private struct Fields {
    let version: UInt32
    let indexChecksum: UInt32
    let fileLength: UInt64
    let indexOffset: UInt64
    let indexLength: UInt64
    let checksum: UInt32
    let progress: UInt32

    init(_ bytes: ArraySlice<UInt8>) throws(ByteReader.Exhausted) {
      var reader = ByteReader(bytes)
      version = try reader.read(UInt32.self)
      indexChecksum = try reader.read(UInt32.self)
      fileLength = try reader.read(UInt64.self)
      indexOffset = try reader.read(UInt64.self)
      indexLength = try reader.read(UInt64.self)
      _ = try reader.read(count: 16)
      checksum = try reader.read(UInt32.self)
      progress = try reader.read(UInt32.self)
    }
  }
}
