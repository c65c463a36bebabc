import Glibc
import Linux

/// The directory that holds a file for each running worker.
public struct WorkerRecordStore: Sendable {
  public let directory: String

  /// Makes the directory where it is missing; only we may look into it.
  public init(directory: String) throws(WorkerRecordError) {
    self.directory = directory
    do throws(SystemCallError) {
      try makeDirectory(directory, mode: 0o700)
      let opened = try Descriptor.open(directory, O_RDONLY | O_DIRECTORY)
      try opened.setMode(0o700, path: directory)
    } catch { throw .unusable(error) }
  }

  private static let suffix = ".worker"

  func path(of name: String) -> String {
    "\(directory)/\(CgroupRoot.sanitised(name))\(Self.suffix)"
  }

  /// Writes a record whole, or leaves the one that was there.
  public func save(_ record: WorkerRecord) throws(WorkerRecordError) {
    let bytes = Array(record.encoded.utf8)
    do throws(SystemCallError) {
      // No fsync: the record needs to outlive the daemon, and the worker doesn't outlive the boot.
      try StateFile.replace(path(of: record.name), with: bytes, durability: .untilBoot)
    } catch { throw .unusable(error) }
  }

  /// Whether there is a record of that name, be it damaged.
  public func contains(_ name: String) -> Bool {
    !isAbsent(path(of: name))
  }

  public func load(_ name: String) throws(WorkerRecordError) -> WorkerRecord {
    try load(path: path(of: name))
  }

  private func load(path: String) throws(WorkerRecordError) -> WorkerRecord {
    let bytes: [UInt8]
    do throws(SystemCallError) { bytes = try readFile(path) } catch { throw .unusable(error) }
    do throws(WorkerRecordError.Damage) {
      return try WorkerRecord.decode(bytes)
    } catch {
      throw .damaged(path: path, error)
    }
  }

  /// All of them, by name, and what is wrong with the others. Removes those that a crash of the machine has left.
  public func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    let names: [String]
    do throws(SystemCallError) { names = try listDirectory(directory) } catch {
      throw .unusable(error)
    }
    var records: [WorkerRecord] = []
    var failures: [WorkerRecordError] = []
    // A `.partial` file is a save that was cut off, or the record that a complete one has replaced.
    for name in names.sorted() where name.hasSuffix(Self.suffix) {
      let path = "\(directory)/\(name)"
      if isLeftByCrash(path) {
        discardFile(path)
        continue
      }
      do throws(WorkerRecordError) { records.append(try load(path: path)) } catch {
        failures.append(error)
      }
    }
    return (records, failures)
  }

  /// A record has its name since it was complete. One without content that is of an earlier boot was complete, too, but
  /// hadn't reached the disk when the machine stopped; its worker ended then. A later one was emptied by something else:
  /// its worker may live, and need its image.
  private func isLeftByCrash(_ path: String) -> Bool {
    // What can't be read is reported.
    BootMark.isOfEarlierBoot(path) && (try? readFile(path))?.allSatisfy { $0 == 0 } == true
  }

  /// Forgets a worker; nothing when it isn't known.
  public func remove(_ name: String) { discardFile(path(of: name)) }
}

/// Why a worker's record can't be saved or read.
public enum WorkerRecordError: Error, Hashable, Sendable, CustomStringConvertible {
  case unusable(SystemCallError)
  case damaged(path: String, Damage)

  public enum Damage: Error, Hashable, Sendable {
    /// Cut off, or changed: the checksum doesn't fit.
    case torn
    case version(String)
    case missing(String)
    case malformed(line: String)
  }

  public var description: String {
    switch self {
    case .unusable(let error): "\(error)"
    case .damaged(let path, .torn):
      "\(path) is damaged: wrong checksum; if the worker that it described still runs, find and "
        + "end it by hand"
    case .damaged(let path, .version(let version)):
      "\(path) has version \(version), which this Dormouse doesn't know; use the newer one"
    case .damaged(let path, .missing(let key)): "\(path) lacks a valid `\(key)`"
    case .damaged(let path, .malformed(let line)): "\(path): malformed line: \(line)"
    }
  }
}
