import Glibc
import Linux

/// The default paths, by the XDG base directory specification. For root without XDG variables they
/// are system-wide. A directory below `/run/user` is one of a login session, which root's daemon
/// doesn't use: otherwise root's verbs wouldn't find the machine's daemon after `ssh root@HOST`.
///
/// | | variable | user | root |
/// |---|---|---|---|
/// | socket | `$DORMOUSE_CONTROL_SOCKET` | its value | its value |
/// | without it | `$XDG_RUNTIME_DIR` | `/tmp/dormouse-UID` | `/run/dormouse` |
/// | with another `$HOME` than the user's own | | `/tmp/dormouse-UID-NUMBER` | `/run/dormouse` |
/// | state | `$XDG_STATE_HOME` | `~/.local/state/dormouse` | `/var/lib/dormouse` |
/// | configuration | `$XDG_CONFIG_HOME` | `~/.config/dormouse` | `/etc/dormouse` |
public struct DefaultPaths: Sendable {
  let environment: [String: String]
  let userID: UInt32
  public let home: String
  /// True if `$HOME` isn't the user's own. The daemon of another home is another daemon.
  let hasOtherHome: Bool
  /// The directory of this executable, a path without links.
  let executableDirectory: String?
  let isDirectory: @Sendable (String) -> Bool

  /// The paths for the environment and user of this process.
  public static func ofThisProcess() -> DefaultPaths {
    let environment = ProcessEnvironment.current().variables
    let user = geteuid()
    let home = environment["HOME"].flatMap(absolute)
    // The user's own home is only queried if it matters: the name service may not respond.
    let isRuntimeShared = user != 0 && environment["XDG_RUNTIME_DIR"].flatMap(absolute) == nil
    let userHome = home == nil || isRuntimeShared ? homeOfUser(user) : nil
    return DefaultPaths(
      environment: environment, userID: user, home: home ?? userHome ?? "/",
      hasOtherHome: home != nil && userHome != nil && home != userHome,
      executableDirectory: readLink("/proc/self/exe").map(parent),
      isDirectory: { path in
        fileStatus(of: path)?.isDirectory == true
      })
  }

  /// The control socket. `option` is the value of `--socket`.
  public func socket(option: String? = nil) -> String {
    if let option, !option.isEmpty { return option }
    if let path = socketFromEnvironment { return path }
    return "\(runtimeDirectory)/control.sock"
  }

  /// The directory of sockets.
  public var runtimeDirectory: String {
    if let directory = variable("XDG_RUNTIME_DIR"),
      userID != 0 || !directory.hasPrefix("/run/user/")
    {
      return "\(directory)/dormouse"
    }
    if userID == 0 { return "/run/dormouse" }
    return "/tmp/dormouse-\(userID)" + (hasOtherHome ? "-\(Project.number(of: home))" : "")
  }

  /// The value of `DORMOUSE_CONTROL_SOCKET`, which overrides a configuration.
  public var socketFromEnvironment: String? {
    environment["DORMOUSE_CONTROL_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The directory of images, logs and reports.
  public var stateDirectory: String {
    if let directory = variable("XDG_STATE_HOME") { return "\(directory)/dormouse" }
    return userID == 0 ? "/var/lib/dormouse" : "\(home)/.local/state/dormouse"
  }

  /// The directory of the configuration.
  public var configurationDirectory: String {
    if let directory = variable("XDG_CONFIG_HOME") { return "\(directory)/dormouse" }
    return userID == 0 ? "/etc/dormouse" : "\(home)/.config/dormouse"
  }

  public var configuration: String { "\(configurationDirectory)/dormouse.yaml" }

  /// The directories in which a policy without a path is searched for, in this order: the user's
  /// own, those of the installation, and those of the source tree in which the executable was
  /// built.
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

  /// An absolute path from a variable. The specification says that relative paths "should be
  /// ignored".
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
}
