import Control
import Linux
import PolicyFile

/// The options of `dormouse daemon`, with their defaults.
struct DaemonOptions: Sendable {
  var configuration: String
  /// True if the path is the default one, not an option. If the file doesn't exist then, the
  /// configuration is empty.
  var mayBeAbsent: Bool
  /// The socket; nil for the configuration's, or else the default.
  var socket: String?
  var defaultSocket: String
  var stateDirectory: String?
  var defaultStateDirectory: String
  /// The policy, a name or a path; nil for the configuration's.
  var policy: String?
  /// True if no worker is started.
  var takesOverOnly = false
  /// The directories in which a policy is looked up by its name, in this order.
  var policyDirectories: [String]

  /// The options of `dormouse daemon` without arguments.
  static func standard(_ paths: DefaultPaths) -> DaemonOptions {
    DaemonOptions(
      configuration: paths.configuration, mayBeAbsent: true, socket: paths.socketFromEnvironment,
      defaultSocket: paths.socket(option: nil), defaultStateDirectory: paths.stateDirectory,
      policyDirectories: paths.policyDirectories)
  }

  /// True if the default configuration doesn't exist.
  var isWithoutFile: Bool {
    mayBeAbsent && isAbsent(configuration) && !ConfigurationFiles.exist(at: configuration)
  }

  func load(_ environment: [String: String]) -> ParseResult<DaemonConfiguration> {
    let library = PolicyLibrary(directories: policyDirectories)
    var loaded =
      isWithoutFile
      ? ConfigurationFile.parse(
        text: "", file: configuration, library: library, environment: environment, policy: policy)
      : ConfigurationFile.load(
        path: configuration, library: library, environment: environment, policy: policy,
        wait: Self.wait)
    loaded.value?.file = absolute(ConfigurationFiles.mainFile(of: configuration))
    return loaded
  }

  /// Waits for work about files with a deadline. A thread that waits for a dead file system doesn't
  /// end. Each directory costs one thread and one wait: the other files in it don't wait behind the
  /// first.
  private static let wait: ConfigurationFile.FileWait = { directory, work in
    let done = Semaphore()
    let isNew = JobPool.files.submitIfIdle(about: "variables in \(directory)") {
      work()
      return { done.signal() }
    }
    return isNew && done.wait(within: fileTimeout)
  }
  private static let fileTimeout = Duration.seconds(5)

  /// The paths of the socket and the state directory. They are absolute: the daemon uses them later
  /// as well, and its workers have other working directories.
  func paths(_ configuration: DaemonConfiguration) -> (socket: String, state: String) {
    (
      absolute(socket ?? configuration.socket) ?? defaultSocket,
      absolute(stateDirectory ?? configuration.stateDirectory) ?? defaultStateDirectory
    )
  }

  /// Returns the same daemon in the background. Errors of the configuration are reported as the
  /// daemon would report them.
  func inBackground() throws -> BackgroundDaemon {
    let loaded = load(ProcessEnvironment.current().variables)
    guard let value = loaded.value else {
      PolicyCheck.complain(loaded.diagnostics)
      throw CommandFailure(.badConfiguration, "the daemon was not started: fix the errors above")
    }
    let paths = paths(value)
    var daemon = BackgroundDaemon(socket: paths.socket, state: paths.state)
    if !mayBeAbsent, let path = absolute(configuration) { daemon.options += ["--config", path] }
    if let policy { daemon.options += ["--policy", policyForDaemon(policy)] }
    return daemon
  }
}

extension DefaultPaths {
  /// The `state_directory` of the default configuration; nil if that doesn't name one.
  var configuredStateDirectory: String? {
    ConfigurationFile.stateDirectory(
      path: configuration, environment: ProcessEnvironment.current().variables)
  }
}

/// Makes a path absolute that is relative to the working directory.
func absolute(_ path: String?) -> String? {
  // If the working directory was removed, the path stays relative.
  guard let path, let here = try? currentDirectory() else { return path }
  return absolutePath(path, in: here)
}
