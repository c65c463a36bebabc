import Glibc
import Linux

// A hibernation image holds the private memory of one worker (of all its processes) and the state
// of its threads. docs/image-format.md is the specification; in short:
//
//     0          64                                index offset             end
//     ┌──────────┬─────────────────────────────────┬────────────────────────┐
//     │ header   │ chunks: compressed, each on     │ index: sections of     │
//     │ (last    │ its own, in any order           │ (type, flags, length,  │
//     │ written) │                                 │ payload)               │
//     └──────────┴─────────────────────────────────┴────────────────────────┘
//
// All numbers are little-endian. The header is written last and the file is renamed to its final
// name after that, so a file under its final name is complete. A reader skips a section of unknown
// type if the section's flag permits that.

/// The layout's constants.
enum ImageLayout {
  static let magic: [UInt8] = Array("DORMOUSE".utf8)
  static let version: UInt32 = 1
  /// The flag in the version field that says that chunks and index are encrypted (`Seal`). A reader
  /// that doesn't know the flag reports an unknown version.
  static let sealed: UInt32 = 1 << 16
  /// The flag in the version field that says that chunks are blocks with a checksum of ours.
  static let blocks: UInt32 = 1 << 17
  static let headerLength = 64
  /// The offset of `ImageProgress` in the header. The header's checksum doesn't cover it, because
  /// it changes later.
  static let progressOffset = 60

  /// The greatest length of the page data in a chunk of the working set, in bytes. It is small, so
  /// that a small working set is still divided among all cores.
  static let prefetchChunkLength = 64 * 1024

  /// The greatest length of the page data in a chunk from which single pages will be read, in
  /// bytes. It is 16 KiB, and never less than a page (arm64 may have pages of 64 KiB).
  static let learningChunkLength = max(16 * 1024, Int(pageSize))

  /// The greatest length of the page data in a chunk of an overlay, in bytes. It is small, because
  /// single pages of it may be read.
  static let overlayChunkLength = 64 * 1024

  /// The greatest length of the page data in a chunk, in bytes. 256 KiB costs at most 1 % of
  /// compression ratio against one long frame, and lets every core work.
  static let chunkLength = 256 * 1024

  /// The greatest length of a chunk in a file, in bytes: one that can't be compressed, encrypted.
  static let storedLength = ChunkCompressor.bound(chunkLength) + Seal.overhead

  // A limit that a reader checks, so that a damaged file can't make it allocate any amount of
  // memory.
  static let maximumIndexLength: UInt64 = 1 << 30

  enum Section {
    static let processes: UInt32 = 1
    static let chunks: UInt32 = 2
    /// The mappings that may have missing pages. A reader may skip this section.
    static let mappings: UInt32 = 3
    /// The image's identity. A reader may skip this section.
    static let identity: UInt32 = 8
    /// The image's base, and the pages that the image needs from it.
    static let base: UInt32 = 9
  }
  /// The flag of a section that a reader may skip if it doesn't know the section's type.
  static let mayBeSkipped: UInt32 = 1
}

/// The progress of a hibernation or a resume when the image's header was last written.
public enum ImageProgress: UInt32, Sendable {
  /// The image is complete. Threads may have registers that aren't their own, and pages may have
  /// been freed.
  case committed = 1
  /// All pages have been freed. The threads have their own registers and are at rest.
  case atRest = 2
  /// The worker may run, and the pages that aren't in memory yet come from this image. The worker's
  /// fault journals show which pages those are.
  case filling = 4
}

/// A process in an image.
public struct ImageProcess: Sendable {
  public var pid: Int32
  /// The time when the process started, in clock ticks since boot. Together with the pid it
  /// identifies the process until the next boot.
  public var startTime: UInt64
  /// The address at which the scratch area is mapped, or would be.
  public var scratchAddress: UInt64
  public var threads: [TracedThreadState]

  var identity: ProcessIdentity { ProcessIdentity(pid: pid, startTime: startTime) }

  /// A thread as it was when it was stopped.
  public struct TracedThreadState: Sendable {
    public var tid: Int32
    /// True if the thread was stopped inside a system call. It may then be the one that was
    /// borrowed to free pages.
    public var isWaiting: Bool
    /// The set of signals that the thread blocks: signal n is bit n − 1.
    public var signalMask: UInt64
    /// The registers as 64-bit numbers, in the order that the processor's format has
    /// (docs/image-format.md).
    public var registers: [UInt64]
  }
}

/// A chunk of page data: its offset in the file, and the pages that it fills.
struct ImageChunk: Sendable {
  var process: UInt32
  /// True if the process may write to all pages of the chunk.
  var writable: Bool
  /// True if the chunk belongs to the working set, as far as that is known. Such chunks are small
  /// and come first.
  var isPrefetched = false
  /// True if all pages are of anonymous mappings and outside the working set: they are filled in
  /// the background, while the process runs.
  var isBackgroundFilled = false
  var offset: UInt64
  var storedLength: UInt32
  var ranges: [PageRange]

  /// The number of bytes of page data.
  var length: Int { ranges.reduce(0) { $0 + Int($1.length) } }

}

/// A mapping that may have missing pages while its process runs.
struct ImageMapping: Sendable {
  var process: UInt32
  var range: PageRange
}

extension ImageChunk {
  private enum Flag {
    static let writable: UInt32 = 1
    static let prefetched: UInt32 = 2
    static let backgroundFilled: UInt32 = 4
  }

  /// The flags as they are in the file.
  var flags: UInt32 {
    get {
      (writable ? Flag.writable : 0) | (isPrefetched ? Flag.prefetched : 0)
        | (isBackgroundFilled ? Flag.backgroundFilled : 0)
    }
    set {
      writable = newValue & Flag.writable != 0
      isPrefetched = newValue & Flag.prefetched != 0
      isBackgroundFilled = newValue & Flag.backgroundFilled != 0
    }
  }
}

/// The reason why an image can't be used.
public enum ImageError: Error, Sendable, CustomStringConvertible {
  case unreadable(path: String, SystemCallError)
  case notAnImage(path: String)
  /// A FIFO, a device, a symbolic link or a directory.
  case notAFile(path: String)
  case unknownVersion(path: String, version: UInt32)
  case ofAnotherMachine(path: String, ImageMachine)
  case truncated(path: String, expected: UInt64, actual: UInt64)
  case damaged(path: String, reason: String)
  /// The file at the base's path is not the image's base.
  case foreignBase(path: String, base: String)
  /// The image is encrypted, and there is no key or no library to decrypt it.
  case locked(path: String, SealError)

  public var description: String {
    switch self {
    case .unreadable(let path, let error): "can't read the image \(path): \(error.reason)"
    case .notAnImage(let path): "\(path) is not a hibernation image"
    case .notAFile(let path): "\(path) is not a hibernation image: not a regular file"
    case .unknownVersion(let path, let version):
      "the image \(path) has format version \(version), this Dormouse reads \(ImageLayout.version)"
    case .ofAnotherMachine(let path, let machine):
      "the image \(path) is of another machine (\(machine)); this one is \(ImageMachine.current)"
    case .truncated(let path, let expected, let actual):
      "the image \(path) is truncated: \(actual) of \(expected) bytes"
    case .damaged(let path, let reason): "the image \(path) is damaged: \(reason)"
    case .foreignBase(let path, let base):
      "the image \(path) belongs to another base than \(base)"
    case .locked(let path, let error): "the image \(path) can't be decrypted: \(error)"
    }
  }
}

extension ImageError {
  /// The error for an encrypted component of an image that can't be opened.
  static func sealed(_ error: Seal.Broken, path: String, subject: String) -> ImageError {
    error.isShortage
      ? .unreadable(path: path, SystemCallError("decrypt", on: path, code: ENOMEM))
      : .damaged(path: path, reason: "\(subject) fails authentication")
  }

  /// True if the failure says nothing about the image: reading it again may work, after EIO too, or
  /// in the newer daemon that has written it. Only a file that doesn't exist is certainly lost.
  var isTransient: Bool {
    switch self {
    case .unreadable(_, let error): error.code != ENOENT
    case .unknownVersion: true
    case .locked(_, let error): error.isTransient
    default: false
    }
  }
}

extension SystemCallError {
  /// True if a resource or a right was missing, which can change: memory, descriptors, permission.
  var isTransient: Bool { isShortage || code == EACCES || code == EPERM }
}

/// Appends little-endian numbers.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
  }
  mutating func append(_ more: [UInt8]) { bytes += more }
}

/// Reads little-endian numbers one after another. It never reads past the end.
struct ByteReader {
  private let bytes: ArraySlice<UInt8>
  /// The number of bytes that have been read.
  private var position = 0

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  struct Exhausted: Error {}

  /// The number of bytes that are left.
  var count: Int { bytes.count - position }

  mutating func read<Number: FixedWidthInteger>(_: Number.Type) throws(Exhausted) -> Number {
    guard count >= MemoryLayout<Number>.size else { throw Exhausted() }
    defer { position += MemoryLayout<Number>.size }
    return bytes.withUnsafeBytes {
      Number(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Number.self))
    }
  }

  mutating func read(count wanted: Int) throws(Exhausted) -> ArraySlice<UInt8> {
    guard wanted >= 0, count >= wanted else { throw Exhausted() }
    defer { position += wanted }
    return bytes.dropFirst(position).prefix(wanted)
  }
}

extension PageRange {
  /// True if the range may be in an image: whole pages, at least one, and not past the end of the
  /// address space.
  var isSound: Bool {
    length > 0 && address % pageSize == 0 && length % pageSize == 0
      && !address.addingReportingOverflow(length).overflow
  }
}
