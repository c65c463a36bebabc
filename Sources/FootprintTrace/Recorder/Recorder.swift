import Control
import Glibc
import Journal
import Linux
import Policy

/// The subject and the options of a recording.
public struct RecorderSettings {
  public enum Subject {
    case worker(String, socket: String, isNamed: Bool)
    case process(Int32)
    /// A program with its arguments. `path` is the program's file. `firstArgument` is the index in
    /// this process's own arguments at which the command begins.
    case command(path: String, [String], firstArgument: Int)
  }

  public var subject: Subject
  /// The interval between two samples; at least 1 ms.
  public var every: Duration
  /// The longest duration of the recording. nil: it runs until something else ends it.
  public var limit: Duration?
  /// The times, since the beginning, at which the subject is asked to free memory.
  public var warnings: [Duration] = []
  /// The signal that asks a process to free memory. It isn't used for a worker, which the daemon
  /// warns.
  public var warning: Int32 = SIGUSR1
  /// The path of the file; `-` is standard output. nil: a new file, named after the subject.
  public var file: String?
  /// The version of this program, for the header.
  public var version: String

  public init(subject: Subject, every: Duration, limit: Duration?, version: String) {
    self.subject = subject
    self.every = every
    self.limit = limit
    self.version = version
  }
}

/// Records a footprint to a file until the recording ends. Use it from one thread.
public final class Recorder {
  private let settings: RecorderSettings
  private let source: any RecordingSource
  private let file: RecordingFile
  private let began: Int64
  private var meter = ProcessTreeMeter()
  private var warnings: [Double]
  /// Called with each mark after it is written.
  public var onMark: ((FootprintMark) -> Void)?
  /// The newest samples and marks of the recording, for a live picture.
  public private(set) var recent: Recording

  /// The maximum number of samples and of marks that are kept for a live picture.
  private static let maxRecent = 4096

  /// The path of the file; `-` is standard output.
  public var path: String { file.path }

  /// Creates the file, and starts the program if the recording has one to start.
  public init(_ settings: RecorderSettings) throws(RecordingFailure) {
    self.settings = settings
    began = Clocks.boottime
    let wall = WallTime(nanoseconds: Clocks.realtime)
    warnings = settings.warnings.map(\.seconds).sorted()
    if case .command(_, let words, _) = settings.subject {
      // The file is created first: the program isn't started if its recording can't be written.
      file = try RecordingFile.create(settings.file, for: words.first ?? "")
      do throws(RecordingFailure) { source = try Self.source(settings, wall) } catch {
        file.discard()
        throw error
      }
    } else {
      // Here the file is created last: an unknown name must not leave a file.
      source = try Self.source(settings, wall)
      file = try RecordingFile.create(settings.file, for: source.name)
    }
    let header = RecordingHeader(
      subject: source.subject, name: source.name, pid: source.pid, command: source.command,
      state: source.state, every: settings.every.seconds, time: wall.text,
      version: settings.version, host: .ofThisMachine)
    recent = Recording(header: header, samples: [])
    do throws(RecordingFailure) { try file.write(header.json) } catch {
      source.release()
      throw error
    }
  }

  private static func source(
    _ settings: RecorderSettings, _ wall: WallTime
  ) throws(RecordingFailure) -> any RecordingSource {
    switch settings.subject {
    case .process(let pid): return try ProcessSource(pid, warning: settings.warning)
    case .command(let path, let words, let first):
      return try CommandSource(path, words, firstArgument: first, warning: settings.warning)
    case .worker(let name, let socket, let isNamed):
      let client = try asking { () throws(ControlError) in
        try ControlClient(connectingTo: socket, isNamed: isNamed)
      }
      return try WorkerSource(name, client: client, began: wall)
    }
  }

  // MARK: the recording

  /// Writes samples and marks until the recording ends. `onSample` is called after each regular
  /// sample.
  ///
  /// - Returns: how the program ended, if it was started for the recording.
  public func run(
    onSample: (Recorder) -> Void
  ) throws(RecordingFailure) -> ForegroundChild.End? {
    let signals = try recording { () throws(SystemCallError) in
      try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1])
    }
    let end: RecordingEnd
    do throws(RecordingFailure) {
      end = try follow(signals, onSample)
    } catch {
      if recent.samples.isEmpty {
        file.discard()
      } else {
        // The first error is the one to report.
        try? file.write(RecordingEnd(at: now, reason: .failed).json)
      }
      source.release()
      throw error
    }
    recent.end = end
    try file.write(end.json)
    source.release()
    return (source as? CommandSource)?.end
  }

  /// Seconds since the beginning.
  private var now: Double { Double(Clocks.boottime - began) / 1e9 }

  private func follow(
    _ signals: borrowing SignalQueue, _ onSample: (Recorder) -> Void
  ) throws(RecordingFailure) -> RecordingEnd {
    let every = max(settings.every.seconds, 0.001)
    var next = 0.0
    var hasSampled = false
    while true {
      let updates = try source.updates(at: now)
      for mark in updates.marks { try add(mark) }
      if let end = updates.end { return end }
      // This extra sample shows the footprint at the moment of the event.
      if !updates.marks.isEmpty, now < next { try sample() }
      // The limit is checked only after the first sample, because the start of the recording may
      // have used all of the time.
      if hasSampled, let limit = settings.limit?.seconds, now >= limit {
        return RecordingEnd(at: now, reason: .time)
      }
      if now >= next {
        try sample()
        hasSampled = true
        onSample(self)
        // Samples that are overdue are left out. The others stay at regular times.
        next = max(next + every, (now / every).rounded(.down) * every)
      }
      try warnIfDue()
      if let end = try wait(until: next, signals) { return end }
    }
  }

  private func sample() throws(RecordingFailure) {
    let tree = try source.tree()
    let sample: FootprintSample
    do throws(FootprintError) {
      sample = try meter.measure(tree, at: now)
    } catch { throw .measure(error) }
    // The process has just ended, and `updates` will report it. An ended process isn't recorded as
    // an empty footprint.
    if sample.processes == 0, source.subject != .worker { return }
    try file.write(sample.json)
    recent.samples.append(sample)
    if recent.samples.count > Self.maxRecent { recent.samples.removeFirst(Self.maxRecent / 2) }
  }

  private func warnIfDue() throws(RecordingFailure) {
    while let due = warnings.first, now >= due {
      warnings.removeFirst()
      if let mark = try source.warn(at: now) { try add(mark) }
    }
  }

  /// Waits for the next sample, warning or end, for an update of the subject, or for a signal. A
  /// signal may end the recording.
  private func wait(
    until next: Double, _ signals: borrowing SignalQueue
  ) throws(RecordingFailure) -> RecordingEnd? {
    let moments = [next, warnings.first, settings.limit?.seconds].compactMap(\.self)
    let deadline = Deadline(in: .seconds(max(0, (moments.min() ?? next) - now)))
    var entries = [signals.raw, source.descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    _ = try recording { () throws(SystemCallError) in
      try waitForEvents(&entries, milliseconds: deadline.remainingMilliseconds)
    }
    guard entries[0].revents != 0, let signal = signals.nextArrival() else { return nil }
    if signal.number == SIGUSR1 {
      try add(FootprintMark(at: now, kind: .note, text: "marked by hand"))
      return nil
    }
    return source.handle(signal) ? RecordingEnd(at: now, reason: .interrupted) : nil
  }

  // MARK: the file

  private func add(_ mark: FootprintMark) throws(RecordingFailure) {
    try file.write(mark.json)
    onMark?(mark)
    recent.marks.append(mark)
    if recent.marks.count > Self.maxRecent { recent.marks.removeFirst(Self.maxRecent / 2) }
  }
}

extension RecordingHeader.Host {
  static var ofThisMachine: Self {
    // The kernel's release is only for the reader of the recording.
    let kernel = (try? readText("/proc/sys/kernel/osrelease")) ?? "?"
    return Self(
      kernel: String(kernel.prefix { $0 != "\n" }),
      cores: onlineProcessors,
      // The memory and swap are only for the reader, too. 0: unknown.
      memory: (try? MemoryInfo.read())?.total ?? 0, page: Int64(pageSize),
      swap: (try? MemoryInfo.read())?.swapFree ?? 0)
  }
}
