// libFuzzer targets, which scripts/fuzz builds and runs. One executable has all of them;
// FUZZ_TARGET names one.
import Glibc
import Linux

/// Inputs of one kind, and the code that reads them.
struct FuzzTarget: Sendable {
  /// Reads one input. It ends the process if a property is violated.
  var read: @Sendable ([UInt8]) -> Void
  /// Returns the files to begin with, by name.
  var seeds: @Sendable () throws -> [String: [UInt8]]

  static func named(_ name: String) -> FuzzTarget? {
    switch name {
    // The image target reads a hibernation image.
    case "image": image
    // The journal target reads the journal of a lazy restore, and the layout of pages that follows
    // from it.
    case "journal": faultJournal
    // The purgeable target reads the table at the beginning of a worker's purgeable memory.
    case "purgeable": purgeable
    // The messages target reads what a worker sends: lines, datagrams, HTTP.
    case "messages": messages
    // The proc target reads texts of /proc and of cgroups.
    case "proc": procTexts
    // The files target reads files of variables, logs, records of workers, and marks in them.
    case "files": files
    default: nil
    }
  }

  static let current: FuzzTarget = {
    let name = environment("FUZZ_TARGET") ?? "image"
    guard let target = named(name) else { fatalError("there is no fuzz target \(name)") }
    return target
  }()
}

private func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard let data, size <= 1 << 20 else { return 0 }
  FuzzTarget.current.read(Array(UnsafeBufferPointer(start: data, count: size)))
  return 0
}

/// Writes the seeds into the directory of FUZZ_SEEDS, if there is one, and ends.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _ count: UnsafeMutablePointer<CInt>?,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?
) -> CInt {
  guard let directory = environment("FUZZ_SEEDS") else { return 0 }
  writeSeeds(to: directory)
  exit(0)
}

private func writeSeeds(to directory: String) {
  do {
    for (name, bytes) in try FuzzTarget.current.seeds() {
      let file = try Descriptor.open("\(directory)/seed-\(name)", O_WRONLY | O_CREAT, mode: 0o600)
      precondition(write(file.raw, bytes, bytes.count) == bytes.count)
    }
  } catch { fatalError("\(error)") }
}

/// Returns the file's content, which is empty if this kernel has no such file.
func content(_ path: String) -> [UInt8] { (try? readFile(path)) ?? [] }

/// Reads a little-endian number of `count` bytes.
func number(_ file: [UInt8], _ offset: Int, _ count: Int) -> UInt64 {
  file[offset..<(offset + count)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
}

/// Writes a little-endian number of `count` bytes.
func put(_ value: UInt64, _ count: Int, _ offset: Int, _ file: inout [UInt8]) {
  for byte in 0..<count {
    file[offset + byte] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(byte)))
  }
}
