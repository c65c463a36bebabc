import Policy

/// Reads trace files piece by piece: call `begin`, `feed` and `end` for each. The header of a file
/// says its kind. The files of one data set can be in any order; days follow each other in the
/// order of their files.
public struct TraceLoader: Sendable {
  /// The unit that becomes a worker. Azure keeps an application's functions in one process.
  public enum Unit: String, Sendable, CaseIterable { case app, function }

  public var unit: Unit
  private var splitter = CSVSplitter(file: "")
  private var kind: TraceFileKind?
  private var minutesRead: Int64 = 0
  private var length: Int64 = 0
  private var names: [String: Int32] = [:]
  private var workers: [TraceWorker] = []
  private var uses: [Trace.Use] = []
  private var others: [Trace.HostChange] = []
  private var ends: [Trace.End] = []
  /// The number of the function, for each use without a known duration.
  private var functionOfUse: [Int32] = []
  private var functions: [String: Int32] = [:]
  private var durations: [Int32: [Double]] = [:]
  private var megabytes: [String: Double] = [:]
  private var fileNames: [String] = []
  private var random: SplitMix64

  /// The maximum number of uses, with their counts, that a burst within a minute becomes.
  static let maxUsesPerMinute = 4
  /// The maximum length in milliseconds: 1,000 days. A longer trace would take minutes to simulate.
  static let maxLength: Int64 = 1_000 * 86_400_000
  /// The percentiles of durations in the 2019 data set, 0–100 %.
  private static let percentiles = [0, 1, 25, 50, 75, 99, 100.0]

  public init(unit: Unit = .app, seed: UInt64 = 1) {
    self.unit = unit
    random = SplitMix64(seed: seed)
  }

  /// Begins to read a file.
  ///
  /// - Parameter file: the name of the file, for messages.
  public mutating func begin(file: String) {
    splitter = CSVSplitter(file: file)
    kind = nil
    fileNames.append(file)
  }

  /// Reads the next bytes of the file. The pieces may have any size.
  public mutating func feed(_ bytes: [UInt8]) throws(TraceError) {
    splitter.feed(bytes)
    while let row = try splitter.next() { try read(row) }
  }

  /// Ends the file that was begun.
  public mutating func end() throws(TraceError) {
    splitter.finish()
    while let row = try splitter.next() { try read(row) }
    guard let kind else { throw TraceError(file: splitter.file, what: "the file is empty") }
    guard case .invocations2019(let minutes) = kind else { return }
    minutesRead += Int64(minutes)
    length = max(length, minutesRead * 60_000)
    guard length <= Self.maxLength else {
      throw TraceError(file: splitter.file, what: "the days together are more than 1,000")
    }
  }

  private mutating func read(_ row: CSVRow) throws(TraceError) {
    switch kind {
    case nil: kind = try TraceFileKind(header: row)
    case .dormouse?: try readDormouse(row)
    case .invocations2019(let minutes)?: try readMinutes(row, minutes)
    case .durations2019?: try readDurations(row)
    case .memory2019?: megabytes[try row.text(1)] = try row.number(7, atMost: 1_048_576, " MB")
    case .invocations2021?: try readInvocation(row)
    }
  }

  private mutating func worker(named name: String) -> Int32 {
    if let number = names[name] { return number }
    let number = Int32(workers.count)
    names[name] = number
    workers.append(TraceWorker(name: name, footprint: .zero, launch: .zero))
    return number
  }

  private mutating func function(named name: String) -> Int32 {
    if let number = functions[name] { return number }
    let number = Int32(functions.count)
    functions[name] = number
    return number
  }
}

// MARK: Azure Functions

extension TraceLoader {
  /// Reads HashOwner, HashApp, HashFunction, Trigger, 1 … 1440.
  private mutating func readMinutes(_ row: CSVRow, _ minutes: Int) throws(TraceError) {
    let (app, function) = (try row.text(1), try row.text(2))
    let number = self.function(named: app + "/" + function)
    let worker = worker(named: unit == .app ? app : app + "/" + function)
    for minute in 0..<minutes {
      let count = try row.count(minute + 4)
      guard count > 0 else { continue }
      let pieces = min(count, Self.maxUsesPerMinute)
      let start = (minutesRead + Int64(minute)) * 60_000
      for piece in 0..<pieces {
        let offset = Int64((Double(piece) + random.unit()) / Double(pieces) * 60_000)
        let share = count / pieces + (piece < count % pieces ? 1 : 0)
        uses.append(
          Trace.Use(
            at: start + offset, worker: worker, duration: 0,
            count: Int32(clamping: share)))
        functionOfUse.append(number)
      }
    }
  }

  /// Reads HashOwner, HashApp, HashFunction, Average, Count, Minimum, Maximum and seven
  /// percentiles, all in ms.
  private mutating func readDurations(_ row: CSVRow) throws(TraceError) {
    let number = function(named: try row.text(1) + "/" + row.text(2))
    var values: [Double] = []
    for field in 7..<14 { values.append(try row.number(field, atMost: 1e12, " ms")) }
    durations[number] = values
  }

  /// Reads app, func, end_timestamp and duration, in seconds.
  private mutating func readInvocation(_ row: CSVRow) throws(TraceError) {
    let (app, function) = (try row.text(0), try row.text(1))
    let end = try row.number(
      2, atMost: Double(Self.maxLength / 1000), " seconds since the start of the trace")
    let duration = try row.number(3, atMost: 1e9, " s")
    let start = max(0, ((end - duration) * 1000).rounded())
    uses.append(
      Trace.Use(
        at: Int64(start), worker: worker(named: unit == .app ? app : app + "/" + function),
        duration: Int32(clamping: Int64(duration * 1000))))
    functionOfUse.append(-1)
    length = max(length, (Int64(end * 1000) / 3_600_000 + 1) * 3_600_000)
  }

  /// Returns a random duration in milliseconds. It interpolates between the percentiles that the
  /// data set has for a function.
  private mutating func duration(of function: Int32) -> Int32 {
    guard let values = durations[function] else {
      return Int32(min(random.logNormal(median: 300, sigma: 1.5), 600_000))
    }
    let share = random.unit() * 100
    let index = max(1, Self.percentiles.firstIndex { $0 >= share } ?? 1)
    let (low, high) = (Self.percentiles[index - 1], Self.percentiles[index])
    let fraction = (share - low) / (high - low)
    let value = values[index - 1] + fraction * (values[index] - values[index - 1])
    return Int32(clamping: max(0, Int64(value)))
  }
}

// MARK: Dormouse's own format

extension TraceLoader {
  private mutating func readDormouse(_ row: CSVRow) throws(TraceError) {
    switch try row.text(0) {
    case "length": length = max(length, try row.time(1))
    case "others":
      others.append(
        Trace.HostChange(at: try row.time(1), share: try row.number(2, atMost: 100, " %") / 100))
    case "worker": try readWorker(row)
    case "use": try readUse(row)
    case "end":
      ends.append(Trace.End(at: try row.time(1), worker: try declaredWorker(row)))
    default: throw row.wrong(0, "`length`, `others`, `worker`, `use` or `end`")
    }
  }

  private func declaredWorker(_ row: CSVRow) throws(TraceError) -> Int32 {
    guard let worker = names[try row.text(2)] else {
      throw row.wrong(2, "the name of a worker declared above")
    }
    return worker
  }

  /// Reads use, ms, NAME, duration in ms, count, `own`.
  private mutating func readUse(_ row: CSVRow) throws(TraceError) {
    var use = Trace.Use(
      at: try row.time(1), worker: try declaredWorker(row),
      duration: Int32(clamping: try row.count(3)),
      count: row.count > 4 ? Int32(clamping: try row.count(4)) : 1)
    if row.count > 5 {
      guard try row.text(5) == "own" else { throw row.wrong(5, "`own`") }
      use.isSelfInitiated = true
    }
    uses.append(use)
    functionOfUse.append(-1)
    length = max(length, use.at + 1)
  }

  /// Reads worker, NAME, bytes, launch in ms, bytes an hour, importance, `running` or `hibernated`.
  private mutating func readWorker(_ row: CSVRow) throws(TraceError) {
    let name = try row.text(1)
    guard !name.isEmpty, names[name] == nil else { throw row.wrong(1, "a new worker's name") }
    let number = Int(worker(named: name))
    workers[number].footprint = ByteCount(try row.bytes(2))
    workers[number].launch = .milliseconds(try row.time(3))
    if row.count > 4 { workers[number].leak = ByteCount(try row.bytes(4)) }
    if row.count > 5 { workers[number].importance = min(100, try row.count(5)) }
    if row.count > 6 {
      guard let start = TraceWorker.Start(rawValue: try row.text(6)) else {
        throw row.wrong(6, "`absent`, `running` or `hibernated`")
      }
      workers[number].start = start
    }
  }
}

// MARK: the result

extension TraceLoader {
  /// Returns the trace of all files.
  ///
  /// - Parameter maxWorkers: the number of workers that are chosen at random. `nil`: all.
  public mutating func trace(maxWorkers: Int? = nil) throws(TraceError) -> Trace {
    guard !uses.isEmpty else {
      throw TraceError(
        file: fileNames.first ?? "trace", what: "no invocations: no worker is ever used")
    }
    for index in uses.indices where functionOfUse[index] >= 0 {
      uses[index].duration = duration(of: functionOfUse[index])
    }
    for index in workers.indices where workers[index].footprint == .zero { complete(index) }
    var trace = Trace(
      name: fileNames.map { String($0.split(separator: "/").last ?? "") }.joined(separator: ", "),
      length: length, workers: workers, uses: uses,
      others: others.isEmpty ? [Trace.HostChange(at: 0, share: 0.1)] : others, ends: ends)
    if let maxWorkers, maxWorkers < workers.count { trace.keep(maxWorkers, &random) }
    trace.uses.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    trace.others.sort { $0.at < $1.at }
    trace.ends.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    return trace
  }

  /// Adds the values that the data sets lack. They are drawn as the generators draw them.
  private mutating func complete(_ index: Int) {
    let app = String(workers[index].name.split(separator: "/").first ?? "")
    let size = megabytes[app] ?? min(max(random.logNormal(median: 12, sigma: 1), 2), 1024)
    let launch = 20 + 3.3 * size * random.logNormal(median: 1, sigma: 0.7)
    workers[index].footprint = ByteCount(Int64(max(size, 0.25) * 1_048_576))
    workers[index].launch = .milliseconds(Int64(launch))
  }
}

extension Trace {
  fileprivate mutating func keep(_ count: Int, _ random: inout SplitMix64) {
    let chosen = Array(workers.indices.shuffled(using: &random).prefix(count)).sorted()
    var numbers = [Int32](repeating: -1, count: workers.count)
    for (new, old) in chosen.enumerated() { numbers[old] = Int32(new) }
    workers = chosen.map { workers[$0] }
    uses = uses.compactMap { use in
      var use = use
      use.worker = numbers[Int(use.worker)]
      return use.worker < 0 ? nil : use
    }
    ends = ends.compactMap { end in
      let number = numbers[Int(end.worker)]
      return number < 0 ? nil : Trace.End(at: end.at, worker: number)
    }
  }
}
