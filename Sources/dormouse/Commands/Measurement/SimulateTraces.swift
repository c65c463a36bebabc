import ArgumentParser
import Control
import Glibc
import class Linux.Descriptor
import func Linux.kernelResult
import struct Linux.SystemCallError
import Simulation

/// The options for the source of a simulation's trace.
struct TraceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Generate a trace of this pattern.", valueName: "pattern"))
  var generate: TraceGenerator.Pattern?
  @Option(
    help: ArgumentHelp(
      "Read the trace from this file; repeatable, for files that belong together.",
      valueName: "file"),
    completion: .file())
  var trace: [String] = []
  @Option(
    help: ArgumentHelp(
      "The number of workers. Default: 1000 of a generated trace, all of a file. Fewer of a file "
        + "are chosen at random.", valueName: "count"))
  var workers: Int?
  @Option(
    help: ArgumentHelp(
      "The length of a generated trace, in hours, 0.01 to 1000.", valueName: "count"))
  var hours = 24.0
  @Option(
    help: ArgumentHelp(
      "Uses of an average worker in an hour, in a generated trace.", valueName: "count"))
  var usesPerHour = 2.0
  @Option(help: ArgumentHelp("The random seed.", valueName: "number"))
  var seed: UInt64 = 1
  @Option(help: "What counts as a worker in Azure's data.")
  var unit = TraceLoader.Unit.app

  func validate(isChecking: Bool) throws {
    if generate != nil, !trace.isEmpty {
      throw ValidationError("--generate and --trace exclude each other.")
    }
    if isChecking, generate != nil || !trace.isEmpty {
      throw ValidationError("--check generates its own traces; leave --generate and --trace out.")
    }
    try checkNumber("--workers", workers, in: 1...1_000_000)
    if !(0.01...1000).contains(hours) {
      throw ValidationError("--hours is a number from 0.01 to 1000.")
    }
    if !(0.001...10_000).contains(usesPerHour) {
      throw ValidationError("--uses-per-hour is a number from 0.001 to 10000.")
    }
  }

  func load() throws -> Trace {
    guard !trace.isEmpty else {
      let generator = TraceGenerator(
        pattern: generate ?? .daily, workers: workers ?? 1000,
        length: Int64(hours * 3_600_000), seed: seed, usesPerHour: usesPerHour)
      return generator.trace()
    }
    var loader = TraceLoader(unit: unit, seed: seed)
    do {
      for path in trace { try TraceFiles.read(path, into: &loader) }
      return try loader.trace(maxWorkers: workers)
    } catch let error as TraceError {
      Progress.clear()
      throw CommandFailure(.badConfiguration, escaped(error.description))
    }
  }
}

extension TraceGenerator.Pattern: ExpressibleByArgument {}
extension TraceLoader.Unit: ExpressibleByArgument {}

enum TraceFiles {
  /// Reads a trace piece by piece: a day of the data set of 2019 has 1.5 GB.
  static func read(_ path: String, into loader: inout TraceLoader) throws {
    let file = try FileError.wrap("reading", on: path) { () throws(SystemCallError) in
      try Descriptor.open(path)
    }
    let size = Double(max(1, file.fileSize ?? 1))
    loader.begin(file: path)
    var done = 0.0
    while true {
      let bytes = try readSome(file, upTo: 1 << 20, path: path)
      if bytes.isEmpty { break }
      try loader.feed(bytes)
      done += Double(bytes.count)
      Progress.show("reading \(escaped(path))", min(1, done / size))
    }
    try loader.end()
    Progress.clear()
  }

  static func write(_ trace: Trace, _ format: TraceFormat, to directory: String) throws {
    let made = kernelResult(directory) { mkdir($0, 0o755) }
    if made != -EEXIST { try check("making", on: directory, result: made) }
    for file in TraceWriter(trace).files(format) {
      let path = "\(directory)/\(file.name)"
      // A million lines have 100 MB, so they are written in pieces.
      let output = try PictureFile(path)
      var failure: FileError?
      file.makeText { text in
        guard failure == nil else { return }
        do throws(FileError) { try output.add(text) } catch { failure = error }
      }
      if let failure { throw failure }
      try output.write("")
      try Output.line(path)
    }
  }
}
