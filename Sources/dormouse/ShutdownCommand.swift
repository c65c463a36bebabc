import ArgumentParser
import Control

struct ShutdownCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shutdown", abstract: "Stop all workers and end the daemon.")

  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    var daemon = try connection.connect()
    try Output.line(escaped(daemon.ask(.shutdown).text))
  }
}
