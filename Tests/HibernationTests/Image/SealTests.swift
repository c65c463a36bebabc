import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

enum Keyring {
  /// True if images can be encrypted: a key can be kept, and OpenSSL is installed.
  static let isUsable = (try? BootKey.tryKeyring()) != nil && OpenSSL.isThere
}

/// Encrypted images (docs/hibernation.md, Secrets).
@Suite(
  .serialized,
  .enabled(if: Keyring.isUsable, "there is no keyring, or no libcrypto (Debian: libssl3)"))
struct SealTests {
  let service = HibernationService()

  @Test(
    "A worker's secret is in a plain image and not in an encrypted one, and is restored from both",
    arguments: Nightly.one(of: Victim.Parking.available))
  func secret(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "secret", parking: parking)
    let shown = try victim.line()
    let secret = try Self.bytes(shown)
    for sealed in [false, true] {
      let path = Fixture.imagePath()
      try victim.sleep(service, at: path, sealed: sealed)
      #expect(try Self.contains(secret, at: path) == !sealed)
      try victim.wake(service, from: path)
      #expect(try victim.ask("show") == shown)
    }
  }

  @Test func `A sealed image is read again, and its file shows no content`() throws {
    let path = try ImageFormatTests.image(chunks: 3, sealed: true)
    let image = try ImageReader(path: path)
    #expect(image.processes.map(\.pid) == [17, 18])
    var contents: [[UInt8]] = []
    try image.forEachChunk { _, pages in contents.append(Array(pages)) }
    #expect(contents == (0..<3).map { ImageFormatTests.pages(seed: UInt64($0)) })
    // These are a start time and a register of the index, in their unencrypted form.
    var registers = ByteWriter()
    registers.append(UInt64(1))
    registers.append(UInt64(2))
    registers.append(UInt64.max)
    #expect(try !Self.contains(registers.bytes, at: path))
    #expect(try Self.contains(registers.bytes, at: ImageFormatTests.image(chunks: 1)))
  }

  @Test func `A sealed image with any flipped bit is refused`() throws {
    let file = try readFile(ImageFormatTests.image(chunks: 2, sealed: true))
    let path = Fixture.imagePath()
    var random = TestRandom(seed: 39)
    // The progress, at byte 60, isn't authenticated.
    let offsets =
      Array(0..<60) + (0..<300).map { _ in Int.random(in: 64..<file.count, using: &random) }
    for offset in offsets {
      var damaged = file
      damaged[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      try ImageFormatTests.write(damaged, to: path)
      #expect(throws: ImageError.self, "byte \(offset)") { try ImageReader(path: path).verify() }
    }
  }

  @Test func `A flipped bit is refused even if the checksums are corrected`() throws {
    let file = try readFile(ImageFormatTests.image(chunks: 2, sealed: true))
    let header = ImageFormatTests.Header(file)
    let path = Fixture.imagePath()
    for offset in stride(from: header.indexOffset, to: file.count, by: 7) {
      var damaged = file
      damaged[offset] ^= 4
      ImageFormatTests.Header.seal(
        &damaged, index: Array(damaged[header.indexOffset...]), indexOffset: header.indexOffset)
      try ImageFormatTests.write(damaged, to: path)
      let error = #expect(throws: ImageError.self) { try ImageReader(path: path) }
      #expect(error?.description.contains("fails authentication") == true)
    }
  }

  @Test func `Chunks can't be exchanged within an image or between two images`() throws {
    // Both images have the same content, so that only the chunks' offsets differ.
    let paths = try (0..<2).map { _ in
      try ImageFormatTests.image(chunks: 2, sealed: true, seeds: [5, 5])
    }
    let files = try paths.map { try readFile($0) }
    let chunks = try ImageReader(path: paths[0]).chunks
    let length = Int(chunks[0].storedLength)
    #expect(chunks[1].storedLength == chunks[0].storedLength)
    func stored(_ file: Int, _ chunk: Int) -> ArraySlice<UInt8> {
      files[file][Int(chunks[chunk].offset)...].prefix(length)
    }
    // These are an image's own two chunks, and one from the other image, at the same offset.
    for (index, source) in [(0, stored(0, 1)), (1, stored(0, 0)), (0, stored(1, 0))] {
      var file = files[0]
      let start = Int(chunks[index].offset)
      file.replaceSubrange(start..<(start + length), with: source)
      let path = Fixture.imagePath()
      try ImageFormatTests.write(file, to: path)
      let error = #expect(throws: ImageError.self) { try ImageReader(path: path).verify() }
      #expect(error?.description.contains("fails authentication") == true)
    }
    try ImageReader(path: paths[0]).verify()
  }

  @Test("An image that is moved to another directory is refused, because that has another key")
  func otherDirectory() throws {
    let path = try ImageFormatTests.image(chunks: 1, sealed: true)
    let directory = Fixture.imagePath()
    _ = try systemCall("mkdir", on: directory) { mkdir(directory, 0o700) }
    defer { BootKey.discard(in: directory) }
    try ImageFormatTests.write(readFile(path), to: directory + "/image")
    let error = try #require(
      #expect(throws: ImageError.self) { try ImageReader(path: directory + "/image") })
    #expect(error.description.hasSuffix("its key is not in the kernel's keyring any more"))
    #expect(!error.isTransient)
    unlink(directory + "/image")
  }

  @Test func `Only its possessor can read the key, and a discarded key is removed`() throws {
    let directory = Fixture.imagePath()
    _ = try systemCall("mkdir", on: directory) { mkdir(directory, 0o700) }
    _ = try BootKey.forSealing(in: directory)
    func line() throws -> Substring? {
      try readText("/proc/keys").split(separator: "\n").first {
        $0.contains("dormouse:\(directory):")
      }
    }
    let key = try #require(try line()).split(separator: " ")
    #expect(key[4] == "1b010000")
    #expect(key[7] == "user")
    BootKey.discard(in: directory)
    // The kernel removes it a little later.
    var byte: UInt8 = 0
    #expect(clinux_key_read("dormouse:\(directory)", &byte, 1) == -Int64(ENOKEY))
  }

  private static func bytes(_ text: String) throws -> [UInt8] {
    let digits = Array(text)
    return try stride(from: 0, to: digits.count - 1, by: 2).map {
      try #require(UInt8(String(digits[$0...($0 + 1)]), radix: 16))
    }
  }

  private static func contains(_ secret: [UInt8], at path: String) throws -> Bool {
    let file = try readFile(path)
    return file.withUnsafeBytes { file in
      var parking = file[...]
      while let start = parking.firstIndex(of: secret[0]) {
        parking = parking[start...]
        if parking.starts(with: secret) { return true }
        parking = parking.dropFirst()
      }
      return false
    }
  }
}
