import ArgumentParser
import Control
import Glibc
import Linux

/// The verb `dashboard`. The page is a program of its own, so that neither the daemon nor this
/// executable has an HTTP server.
struct DashboardCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dashboard",
    abstract: "Show the workers in a browser.",
    discussion: """
      Prints the page's address with its token, and serves it until you end it. The page has a \
      card for each worker, the most recently used first, with buttons to wake, hibernate or warn \
      it; it shows memory, pressure and events live, and explains each worker. docs/dashboard.md \
      describes it.

      It runs `dormouse-dashboard`, which `make install` installs if `make dashboard` has built it.

      Examples:
        dormouse dashboard
        dormouse dashboard --listen 127.0.0.1:8080 --token-file ~/.dormouse-token
      """)
  @Option(
    help: ArgumentHelp(
      "Listen at this address and port. Default: 127.0.0.1:7411. Port 0 is a free one.",
      valueName: "address"))
  var listen: String?
  @Flag(help: "Permit an address that other machines can reach. HTTP isn't encrypted.")
  var allowRemote = false
  @Option(
    help: ArgumentHelp(
      "Use the token in this file, which is created if it doesn't exist. Default: a new token each "
        + "time.",
      valueName: "path"), completion: .file())
  var tokenFile: String?
  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    guard let program = Self.program() else {
      throw CommandFailure(
        .notDone,
        "dormouse-dashboard isn't installed; `make dashboard` in Dormouse's source directory "
          + "builds it, and `make install` then installs it beside dormouse")
    }
    // The program gets the socket of the project, or of the current directory's one. An option
    // `--socket` is among its arguments.
    if connection.socket == nil {
      setenv("DORMOUSE_CONTROL_SOCKET", try connection.target().path, 1)
    }
    // The program gets this command's own arguments, and has the same options.
    let first = CommandLine.arguments.firstIndex(of: "dashboard") ?? 1
    let failure = Inheritance(firstArgument: first).execute(program)
    throw CommandFailure(.notDone, "can't start \(escaped(program)): \(errorText(failure))")
  }

  /// Finds the program beside this executable, in libexec, or in PATH.
  private static func program() -> String? {
    let name = "dormouse-dashboard"
    let directory = readLink("/proc/self/exe")?.split(separator: "/").dropLast().joined(
      separator: "/")
    let besideThis = (directory.map { ["/\($0)", "/\($0)/../libexec/dormouse"] } ?? []).joined(
      separator: ":")
    let path = ProcessEnvironment.current().variables["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    for search in [besideThis, path] where !search.isEmpty {
      // If it isn't there, the next search path is tried.
      if let path = try? locateCommand(name, searchPath: search, directory: "/") { return path }
    }
    return nil
  }
}
