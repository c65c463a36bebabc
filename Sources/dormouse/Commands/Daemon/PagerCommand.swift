import ArgumentParser
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
