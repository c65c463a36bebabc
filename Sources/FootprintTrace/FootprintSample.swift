import JSONLines

/// The memory of a worker at a moment, by kind, in bytes.
public struct FootprintSample: Hashable, Sendable {
  /// Seconds since the recording began.
  public var at: Double
  /// Private and dirty memory without a file: heap and stacks.
  public var anonymous: Int64
  /// Private copies of file pages, made when the process wrote to them.
  public var copied: Int64 = 0
  /// Shared memory: memfd, tmpfs, System V.
  public var shared: Int64 = 0
  /// Swapped memory that was anonymous or copied.
  public var swapped: Int64 = 0
  /// File pages that the kernel can drop at any time. They aren't part of the footprint.
  public var clean: Int64 = 0
  /// The number of processes. 0: the worker has no process at this moment.
  public var processes = 1

  /// The footprint: all kinds except `clean`.
  public var footprint: Int64 { anonymous + copied + shared + swapped }
}

extension FootprintSample {
  /// The line of the sample in a file.
  public var json: JSON {
    .object([
      .init("t", .seconds(at)), .init("footprint", .int(footprint)),
      .init("anonymous", .int(anonymous)), .init("copied", .int(copied)),
      .init("shared", .int(shared)), .init("swapped", .int(swapped)),
      .init("clean", .int(clean)), .init("processes", .int(Int64(processes))),
    ])
  }

  /// Reads a line. `t` and `footprint` are enough; the kinds are optional.
  init(_ json: JSON, at: Double) throws(RecordingFault) {
    let total = try json.bytes("footprint")
    self.init(
      at: at, anonymous: 0, copied: try json.bytes("copied") ?? 0,
      shared: try json.bytes("shared") ?? 0, swapped: try json.bytes("swapped") ?? 0,
      clean: try json.bytes("clean") ?? 0, processes: Int(try json.bytes("processes") ?? 1))
    guard let privateBytes = try json.bytes("anonymous") ?? total.map({ $0 - footprint }),
      privateBytes >= 0
    else {
      throw RecordingFault("a sample needs `footprint`, in bytes")
    }
    anonymous = privateBytes
  }
}

extension JSON {
  /// Seconds, rounded to whole milliseconds. More digits would be noise.
  static func seconds(_ value: Double) -> JSON { .double((value * 1000).rounded() / 1000) }

  /// A number of bytes from 0 to 2^50, so that sums don't overflow. nil: there is no such member.
  func bytes(_ name: String) throws(RecordingFault) -> Int64? {
    guard let value = self[name] else { return nil }
    guard let number = value.integer, (0...1 << 50).contains(number) else {
      throw RecordingFault("`\(name)` is not a number of bytes")
    }
    return number
  }
}

/// A fault in one line of a recording.
struct RecordingFault: Error {
  var what: String
  init(_ what: String) { self.what = what }
}
