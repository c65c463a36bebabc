/// What `dormouse bench` was asked for.
public struct BenchOptions: Sendable {
  /// What tells that the program works again.
  public enum Request: Hashable, Sendable {
    /// Answered over one connection, which stays open while the program sleeps.
    case http(HTTPAddress)
    /// A shell command that succeeds when the program has answered it.
    case command(String)
  }

  /// What tells that it has started, where no request does.
  public enum Readiness: Hashable, Sendable {
    case tcp(UInt16)
    /// Part of a line of its output.
    case line(String)
  }

  /// argv; the first is a path, or looked up in the environment's PATH.
  public var command: [String]
  public var directory: String
  public var environment: [String: String]
  public var request: Request?
  /// nil: ready when it has answered its first request, or, without any, when it has come to rest.
  public var readiness: Readiness?
  public var rounds = 10
  /// zstd's, −7…19.
  public var level: Int32 = 1
  /// Where images are written, in a directory of their own that goes afterwards. It is made if
  /// necessary.
  public var imageDirectory: String
  /// For each start, and for each response.
  public var patience: Duration = .seconds(60)

  public init(
    command: [String], directory: String, environment: [String: String], imageDirectory: String
  ) {
    self.command = command
    self.directory = directory
    self.environment = environment
    self.imageDirectory = imageDirectory
  }
}

/// What is measured: ways to sleep, each with its way back.
public enum BenchMechanism: String, CaseIterable, Codable, Hashable, Sendable {
  /// SIGSTOP to all, then SIGCONT: what no mechanism can be faster than.
  case signal
  /// The cgroup's freezer.
  case freezer
  /// Hibernated, the image still in the page cache.
  case cached
  /// Hibernated, the image only on disk.
  case dropped
  /// Hibernated, the image in the page cache; what it wants first is there before it runs, the rest
  /// follows. Learned beforehand, in a resume that isn't counted.
  case lazy = "lazy"
  /// Ended, and started again: to the first response. Its end isn't counted.
  case relaunch
  /// Stopped, and paged out to the kernel's swap.
  case swap

  public var title: String {
    switch self {
    case .signal: "SIGCONT alone"
    case .freezer: "thaw alone"
    case .cached: "eager, image cached"
    case .dropped: "eager, image on disk"
    case .lazy: "lazy restore, cached"
    case .relaunch: "relaunch"
    case .swap: "kernel swap"
    }
  }
}

/// How far a run has come.
public struct BenchProgress: Sendable {
  public var round: Int
  public var rounds: Int
  /// nil: the program is started for the first time.
  public var mechanism: BenchMechanism?
}

/// Why there is no result. One sentence each, escaped, without a full stop.
public enum BenchError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A signal came in; everything has been put back, and the signal is pending.
  case interrupted
  /// The program can't be started, doesn't become ready, or doesn't answer.
  case program(String)
  /// The directory for images.
  case place(String)
  /// Something of ours.
  case failed(String)

  public var description: String {
    switch self {
    case .interrupted: "interrupted"
    case .program(let text), .place(let text), .failed(let text): text
    }
  }
}
