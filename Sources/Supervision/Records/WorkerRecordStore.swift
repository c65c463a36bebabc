import Glibc
import Linux

/// The directory that holds one file for each running worker.
public struct WorkerRecordStore: Sendable {
  public let directory: String

  /// Creates the directory if it is missing. Only the daemon's user may read it.
  public init(directory: String) throws(WorkerRecordError) {
    self.directory = directory
    do throws(SystemCallError) {
      try makeDirectory(directory, mode: 0o700)
      let opened = try Descriptor.open(directory, O_RDONLY | O_DIRECTORY)
      try opened.setMode(0o700, path: directory)
    } catch { throw .unusable(error) }
  }

  private static let suffix = ".worker"

  func path(of name: String) -> String { path(sanitised: CgroupRoot.sanitised(name)) }

  private func path(sanitised name: String) -> String { "\(directory)/\(name)\(Self.suffix)" }

  /// Writes a record completely, or keeps the previous one.
  public func save(_ record: WorkerRecord) throws(WorkerRecordError) {
    let bytes = Array(record.encoded.utf8)
    do throws(SystemCallError) {
      // There is no fsync: the record needs to outlive the daemon, but the worker doesn't outlive
      // the boot.
      try StateFile.replace(path(of: record.name), with: bytes, durability: .untilBoot)
    } catch { throw .unusable(error) }
  }

  /// Whether there is a record of that name. It may be damaged.
  public func contains(_ name: String) -> Bool { !isAbsent(path(of: name)) }

  /// Whether there is a record of that name, which has the form that names of files have
  /// (`CgroupRoot.sanitised`).
  public func contains(sanitised name: String) -> Bool { !isAbsent(path(sanitised: name)) }

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

  /// Loads all records, sorted by name, and the errors of those that can't be read. Removes damaged
  /// records that an earlier boot of the machine has left.
  public func loadAll() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) {
    let names: [String]
    do throws(SystemCallError) { names = try listDirectory(directory) } catch {
      throw .unusable(error)
    }
    var records: [WorkerRecord] = []
    var failures: [WorkerRecordError] = []
    // A `.partial` file is an incomplete save, or the record that a complete one has replaced.
    for name in names.sorted() where name.hasSuffix(Self.suffix) {
      let path = "\(directory)/\(name)"
      do throws(WorkerRecordError) { records.append(try load(path: path)) } catch {
        if isOfNoWorker(path, error) { discardFile(path) } else { failures.append(error) }
      }
    }
    return (records, failures)
  }

  /// True if a damaged record is of an earlier boot: its worker ended then. Most are empty, because
  /// their content hadn't reached the disk when the machine stopped. If a record of this boot is
  /// damaged, something else has changed it: its worker may live, and may need its image.
  private func isOfNoWorker(_ path: String, _ error: WorkerRecordError) -> Bool {
    // A record that can't be read is reported, not removed.
    guard case .damaged = error else { return false }
    return BootMark.isOfEarlierBoot(path)
  }

  /// Removes a worker's record. A missing record is no error.
  public func remove(_ name: String) { discardFile(path(of: name)) }
}

/// The reason why a worker's record can't be saved or read.
public enum WorkerRecordError: Error, Hashable, Sendable, CustomStringConvertible {
  case unusable(SystemCallError)
  case damaged(path: String, Damage)

  public enum Damage: Error, Hashable, Sendable {
    /// The record is incomplete or was changed: the checksum doesn't match.
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
