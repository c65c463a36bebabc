import Glibc
import Linux

/// Where things are by default, by the XDG base directory specification; for root without XDG variables,
/// system-wide.
///
/// | | variable | user | root |
/// |---|---|---|---|
/// | socket | `$DORMOUSE_CONTROL_SOCKET`, `$XDG_RUNTIME_DIR` | `/tmp/dormouse-UID` | `/run/dormouse` |
/// | with another `$HOME` than the user's own | | `/tmp/dormouse-UID-NUMBER` | `/run/dormouse` |
/// | state | `$XDG_STATE_HOME` | `~/.local/state/dormouse` | `/var/lib/dormouse` |
/// | configuration | `$XDG_CONFIG_HOME` | `~/.config/dormouse` | `/etc/dormouse` |
public struct DefaultPaths: Sendable {
  private let environment: [String: String]
  private let userID: UInt32
  public let home: String
  /// `$HOME` isn't the user's own: a daemon of that home is another one.
  private let hasOtherHome: Bool
  private let executableDirectory: String?
  private let isDirectory: @Sendable (String) -> Bool

  /// For tests: everything that the paths depend on. `executableDirectory` is the real one.
  public init(
    environment: [String: String], userID: UInt32, home: String, hasOtherHome: Bool = false,
    executableDirectory: String?, isDirectory: @escaping @Sendable (String) -> Bool
  ) {
    self.environment = environment
    self.userID = userID
    self.home = home
    self.hasOtherHome = hasOtherHome
    self.executableDirectory = executableDirectory
    self.isDirectory = isDirectory
  }

  /// Those of this process.
  public static func ofThisProcess() -> DefaultPaths {
    let environment = ProcessEnvironment.current().variables
    let user = geteuid()
    let home = environment["HOME"].flatMap(absolute)
    // Asked only where it counts: the name service may not answer.
    let isRuntimeShared = user != 0 && environment["XDG_RUNTIME_DIR"].flatMap(absolute) == nil
    let own = home == nil || isRuntimeShared ? homeOfUser(user) : nil
    return DefaultPaths(
      environment: environment, userID: user, home: home ?? own ?? "/",
      hasOtherHome: home != nil && own != nil && home != own,
      executableDirectory: linkTarget("/proc/self/exe").map(parent),
      isDirectory: { path in
        fileStatus(of: path)?.isDirectory == true
      })
  }

  /// The control socket; `option` is what `--socket` says.
  public func socket(option: String? = nil) -> String {
    if let option, !option.isEmpty { return option }
    if let path = socketFromEnvironment { return path }
    return "\(runtimeDirectory)/control.sock"
  }

  /// Where sockets are.
  public var runtimeDirectory: String {
    if let directory = variable("XDG_RUNTIME_DIR") { return "\(directory)/dormouse" }
    if userID == 0 { return "/run/dormouse" }
    return "/tmp/dormouse-\(userID)" + (hasOtherHome ? "-\(Project.number(of: home))" : "")
  }

  /// What `DORMOUSE_CONTROL_SOCKET` says, which outweighs a configuration.
  public var socketFromEnvironment: String? {
    environment["DORMOUSE_CONTROL_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Images, logs, reports.
  public var stateDirectory: String {
    if let directory = variable("XDG_STATE_HOME") { return "\(directory)/dormouse" }
    return userID == 0 ? "/var/lib/dormouse" : "\(home)/.local/state/dormouse"
  }

  public var configurationDirectory: String {
    if let directory = variable("XDG_CONFIG_HOME") { return "\(directory)/dormouse" }
    return userID == 0 ? "/etc/dormouse" : "\(home)/.config/dormouse"
  }

  public var configuration: String { "\(configurationDirectory)/dormouse.yaml" }

  /// Where a policy that is named without a path is looked for, in this order: the user's own,
  /// those of the installation, those of the source tree that the executable was built in.
  public var policyDirectories: [String] {
    var directories = ["\(configurationDirectory)/policies"]
    guard let executableDirectory else { return directories }
    directories.append("\(Self.parent(executableDirectory))/share/dormouse/policies")
    var directory = executableDirectory
    for _ in 0...5 {
      let candidate = directory == "/" ? "/Policies" : "\(directory)/Policies"
      if isDirectory(candidate) {
        directories.append(candidate)
        break
      }
      if directory == "/" { break }
      directory = Self.parent(directory)
    }
    return directories
  }

  /// The specification says of relative paths: "should be ignored".
  private func variable(_ name: String) -> String? {
    environment[name].flatMap(Self.absolute)
  }

  private static func absolute(_ path: String) -> String? {
    guard path.hasPrefix("/") else { return nil }
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path
  }

  private static func parent(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  private static func homeOfUser(_ user: UInt32) -> String? {
    guard let entry = getpwuid(user), let directory = entry.pointee.pw_dir else { return nil }
    return absolute(String(cString: directory))
  }

  private static func linkTarget(_ path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
      guard let start = buffer.baseAddress else { return nil }
      let length = readlink(path, start, buffer.count)
      guard length > 0, length < buffer.count else { return nil }
      return String(bytes: buffer[..<length])
    }
  }
}

extension String {
  fileprivate init?(bytes: Slice<UnsafeMutableBufferPointer<CChar>>) {
    self.init(validating: bytes.lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
