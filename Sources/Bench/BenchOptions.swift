import Hibernation
import Policy
import Supervision

/// The options of `dormouse bench`.
public struct BenchOptions: Sendable {
  /// The request whose answer shows that the program works again.
  public enum Request: Hashable, Sendable {
    /// A request over one connection, which stays open while the program sleeps.
    case http(HTTPAddress)
    /// A shell command that succeeds when the program has answered it.
    case command(String)
  }

  /// The arguments of the program. The first one is a path, or a name to find in the environment's
  /// PATH.
  public var command: [String]
  public var directory: String
  public var environment: [String: String]
  public var request: Request?
  /// The sign of readiness. With nil, the program is ready when it has answered its first request,
  /// or, without a request, when it is idle.
  public var readiness: ReadinessRule?
  public var rounds = 10
  public var compression = Compression.zstd(level: 1)
  /// The directory for images. It is created if necessary. Images are written to a new directory in
  /// it, which is removed afterwards.
  public var imageDirectory: String
  /// The timeout of each start and of each response.
  public var timeout: Duration = .seconds(60)

  public init(
    command: [String], directory: String, environment: [String: String], imageDirectory: String
  ) {
    self.command = command
    self.directory = directory
    self.environment = environment
    self.imageDirectory = imageDirectory
  }
}

/// The mechanisms that are measured: the kinds of sleep, each with its way to resume.
public enum BenchMechanism: String, CaseIterable, Codable, Hashable, Sendable {
  /// SIGSTOP to all processes, then SIGCONT. No mechanism can be faster.
  case signal
  /// The freezer of the cgroup.
  case freezer
  /// Hibernated, with the image still in the page cache.
  case cached
  /// Hibernated, with the image only on disk.
  case dropped
  /// Hibernated, with the image in the page cache, and restored lazily: the working set before the
  /// program runs, the remainder afterwards. The working set is learned in resumes that aren't
  /// counted.
  case lazy = "lazy"
  /// Ended and launched again, up to the first response. The time that the end takes isn't counted.
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

/// The progress of a run.
public struct BenchProgress: Sendable {
  public var round: Int
  public var rounds: Int
  /// The mechanism that is measured; nil while the program is launched for the first time.
  public var mechanism: BenchMechanism?
}

/// The reason why there is no result: one escaped sentence without a full stop.
public enum BenchError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A signal arrived before a round was finished. Nothing of the program is left. The signal takes
  /// effect when the run returns.
  case interrupted
  /// The program can't be started, doesn't become ready, or doesn't answer.
  case program(String)
  /// The directory for images can't be used.
  case directory(String)
  /// An error in Dormouse.
  case failed(String)

  public var description: String {
    switch self {
    case .interrupted: "interrupted"
    case .program(let text), .directory(let text), .failed(let text): text
    }
  }
}
