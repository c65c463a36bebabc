import ArgumentParser
import Glibc
import Hibernation
import Linux

/// The standby pager, a process that the daemon starts. It restores the workers' missing pages if
/// the daemon is killed.
struct PagerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pager", abstract: "Restore missing pages if the daemon is killed.",
    shouldDisplay: false)

  @Option(help: "The file that a daemon keeps locked. Trimmed workers wait for the next one.")
  var lock: String?

  func run() throws {
    StandbyPager.run(input: Descriptor(owning: 0), lock: lock) { Output.complain($0) }
  }
}

/// The package's service for userfaultfd, which `dormouse-userfault.socket` starts. It lets
/// ordinary users' daemons trim workers to images and restore them lazily.
struct UserfaultServiceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "userfault-service", abstract: "Let other users' daemons use userfaultfd.",
    shouldDisplay: false)

  @Option(help: "The socket to listen at, without systemd.")
  var listen: String?

  @Option(help: "The group that may connect to that socket.")
  var group = "dormouse"

  func run() throws {
    if let listen {
      try UserfaultServer.run(Self.socket(at: listen, for: group), idleTime: nil)
      return
    }
    guard variable("LISTEN_PID") == "\(getpid())", variable("LISTEN_FDS") == "1" else {
      throw ValidationError("systemd starts it (dormouse-userfault.socket); or use --listen")
    }
    try UserfaultServer.run(Descriptor(owning: 3), idleTime: .seconds(60))
  }

  private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  private static func socket(at path: String, for group: String) throws -> Descriptor {
    let number = try Account(user: nil, group: group).identity.group
    let socket = try UnixSocket.bound(to: path, .packets, group: number)
    try socket.listen(backlog: 64, path: path)
    return socket
  }
}
