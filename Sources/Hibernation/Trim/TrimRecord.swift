import CLinux
import Checksum
import Linux

/// What a later daemon needs if this one dies while it trims a worker by borrowed threads: the
/// processes that are stopped, and the own state of each borrowed thread. The file exists from
/// before the first thread is changed until the last one has its registers again. It is useless
/// after a boot.
///
/// All numbers are little-endian: the magic, the version, the boot's ID, the worker's first
/// process, the stopped processes, the borrowed threads, and a CRC-32C of all that.
struct TrimRecord: Hashable {
  static let magic: [UInt8] = Array("DORMTRIM".utf8)
  static let version: UInt32 = 1
  /// Limits that a reader checks before it allocates memory.
  private static let (maxProcesses, maxRegisters): (UInt32, UInt32) = (1 << 20, 1 << 10)

  /// The boot in which it was written (`BootMark.current`).
  var boot: String
  /// The worker's first process.
  var root: ProcessIdentity
  /// The stopped processes, parents before their children.
  var stopped: [ProcessIdentity]
  var borrowed: [Borrowed]

  /// A thread as it was before it was borrowed.
  struct Borrowed: Hashable {
    var process: ProcessIdentity
    var tid: Int32
    var signalMask: UInt64
    /// The address of the scratch area.
    var scratch: UInt64
    /// The registers as numbers, in the order of the processor's format.
    var registers: [UInt64]

    /// The thread with its own registers. It is `nil` if these are of another architecture.
    var thread: TracedThread? {
      clinux_registers(storedWords: registers).map {
        TracedThread(tid: tid, registers: $0, signalMask: signalMask, isWaiting: true)
      }
    }

    var scratchRange: PageRange { PageRange(address: scratch, length: Injector.scratchLength) }
  }

  /// Why a file isn't a record that can be used.
  struct Damaged: Error, Hashable, CustomStringConvertible {
    let description: String
  }
}

// MARK: - the file

extension TrimRecord {
  var bytes: [UInt8] {
    var writer = ByteWriter()
    writer.append(Self.magic)
    writer.append(Self.version)
    writer.append(UInt8(truncatingIfNeeded: boot.utf8.count))
    writer.append(Array(boot.utf8.prefix(Int(UInt8.max))))
    Self.append(root, to: &writer)
    writer.append(UInt32(stopped.count))
    for process in stopped { Self.append(process, to: &writer) }
    writer.append(UInt32(borrowed.count))
    for thread in borrowed {
      Self.append(thread.process, to: &writer)
      writer.append(thread.tid)
      writer.append(thread.signalMask)
      writer.append(thread.scratch)
      writer.append(UInt32(thread.registers.count))
      for word in thread.registers { writer.append(word) }
    }
    writer.append(CRC32.castagnoli.checksum(of: writer.bytes))
    return writer.bytes
  }

  private static func append(_ process: ProcessIdentity, to writer: inout ByteWriter) {
    writer.append(process.pid)
    writer.append(process.startTime)
  }

  init(parsing bytes: [UInt8]) throws(Damaged) {
    guard bytes.starts(with: Self.magic) else { throw Damaged(description: "it isn't a record") }
    do throws(ByteReader.Exhausted) {
      var end = ByteReader(bytes.suffix(4))
      let sum = try end.read(UInt32.self)
      guard CRC32.castagnoli.checksum(of: bytes.dropLast(4)) == sum else {
        throw ByteReader.Exhausted()
      }
      var reader = ByteReader(bytes.dropLast(4).dropFirst(Self.magic.count))
      guard try reader.read(UInt32.self) == Self.version else { throw ByteReader.Exhausted() }
      let length = Int(try reader.read(UInt8.self))
      boot = String(decoding: try reader.read(count: length), as: UTF8.self)
      root = try Self.readProcess(&reader)
      stopped = try Self.read(&reader, Self.readProcess)
      borrowed = try Self.read(&reader, Self.readBorrowed)
      guard reader.count == 0 else { throw ByteReader.Exhausted() }
    } catch {
      throw Damaged(description: "it is truncated or damaged, or of another version")
    }
    let pids = [root] + stopped + borrowed.map(\.process)
    let areThreadsSound = borrowed.allSatisfy {
      $0.tid > 0 && $0.thread != nil && $0.scratchRange.isSound && stopped.contains($0.process)
    }
    guard pids.allSatisfy({ $0.pid > 1 }), areThreadsSound else {
      throw Damaged(description: "its content makes no sense on this machine")
    }
  }

  private static func read<Item>(
    _ reader: inout ByteReader,
    _ readItem: (inout ByteReader) throws(ByteReader.Exhausted) -> Item
  ) throws(ByteReader.Exhausted) -> [Item] {
    let count = try reader.read(UInt32.self)
    guard count <= maxProcesses else { throw ByteReader.Exhausted() }
    var items: [Item] = []
    for _ in 0..<count { items.append(try readItem(&reader)) }
    return items
  }

  private static func readProcess(
    _ reader: inout ByteReader
  ) throws(ByteReader.Exhausted) -> ProcessIdentity {
    ProcessIdentity(
      pid: try reader.read(Int32.self), startTime: try reader.read(UInt64.self))
  }

  private static func readBorrowed(
    _ reader: inout ByteReader
  ) throws(ByteReader.Exhausted) -> Borrowed {
    let process = try readProcess(&reader)
    let tid = try reader.read(Int32.self)
    let (mask, scratch) = (try reader.read(UInt64.self), try reader.read(UInt64.self))
    let count = try reader.read(UInt32.self)
    guard count <= maxRegisters else { throw ByteReader.Exhausted() }
    var registers: [UInt64] = []
    for _ in 0..<count { registers.append(try reader.read(UInt64.self)) }
    return Borrowed(
      process: process, tid: tid, signalMask: mask, scratch: scratch, registers: registers)
  }
}
