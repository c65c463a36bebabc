import ArgumentParser
import Control
import Dashboard
import Glibc
import NIOCore

import func Linux.errorText

@main
struct DashboardProgram: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dormouse-dashboard",
    abstract: "Shows a daemon's workers in a browser; `dormouse dashboard` starts it.",
    version: Dormouse.version)

  @Option(help: "Address and port to listen at; port 0: a free one.")
  var listen = "127.0.0.1:7411"
  @Flag(help: "Permit an address that other machines can reach. HTTP isn't encrypted.")
  var allowRemote = false
  @Option(
    help: "A file with the token; it is made if it doesn't exist. Default: a new token each time.")
  var tokenFile: String?
  @Option(help: "The daemon's control socket.")
  var socket: String?

  // `dormouse dashboard` has this option too, and passes that project's socket in
  // DORMOUSE_CONTROL_SOCKET.
  @Option(help: .hidden)
  var project: String?

  func run() async throws {
    guard let address = ListenAddress(listen) else {
      Self.end(
        .usage,
        "--listen \(escaped(listen)): expected an address and a port, such as 127.0.0.1:7411 or "
          + "[::1]:7411"
      )
    }
    guard address.isLoopback || allowRemote else {
      Self.end(
        .usage,
        "--listen \(address): other machines could reach this address, and HTTP isn't encrypted; "
          + "use 127.0.0.1 "
          + "and `ssh -L`, or add --allow-remote")
    }
    let token: AccessToken
    do throws(AccessTokenError) {
      token =
        try tokenFile.map { path throws(AccessTokenError) in try AccessToken.inFile(path) }
        ?? .random()
    } catch { Self.end(.notDone, error.description) }
    let settings = DashboardSettings(
      listen: address, allowsRemote: allowRemote, token: token,
      socket: DefaultPaths.ofThisProcess().socket(option: socket), isNamed: socket != nil)
    do {
      try await serve(settings) { url in Self.print("\(url)\n", to: STDOUT_FILENO) }
    } catch let error as IOError {
      Self.end(
        .cannotCreate,
        "can't listen at \(address): \(errorText(error.errnoCode)); choose another port with "
          + "--listen"
      )
    } catch {
      Self.end(.cannotCreate, "can't listen at \(address): \(error)")
    }
  }

  private static func print(_ text: String, to file: Int32) {
    let bytes = Array(text.utf8)
    // Without a reader the address is lost, and the page is still served.
    _ = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
  }

  private static func end(_ code: CommandExit, _ text: String) -> Never {
    print("dormouse: \(text)\n", to: STDERR_FILENO)
    Glibc.exit(code.rawValue)
  }
}
