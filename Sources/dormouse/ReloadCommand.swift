import ArgumentParser
import Control

struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Read the configuration again (as SIGHUP does): all of it is taken, or nothing.",
    discussion: """
      Policies, importance and shed channels apply at once; commands, directories, environments and \
      readiness when a worker is started next. Workers that are new are started, workers that are no \
      longer declared are stopped.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "Only tell what would change.") var dryRun = false

  func run() throws {
    var daemon = try connection.connect()
    try Output.line(escaped(daemon.ask(dryRun ? .previewReload : .reload, keepsLines: true).text))
  }
}
