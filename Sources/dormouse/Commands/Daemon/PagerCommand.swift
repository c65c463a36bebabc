import ArgumentParser
import Hibernation
import Linux

/// The standby pager, a process that the daemon starts. It restores the workers' missing pages if
/// the daemon is killed.
struct PagerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pager", abstract: "Restore missing pages if the daemon is killed.",
    shouldDisplay: false)

  func run() throws {
    for line in StandbyPager.run(input: Descriptor(owning: 0)) { Output.complain(line) }
  }
}
