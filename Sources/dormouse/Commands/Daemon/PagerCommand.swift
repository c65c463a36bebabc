import ArgumentParser
import Hibernation
import Linux

/// Started by the daemon, not by people: goes on with the missing pages of workers when it dies.
struct PagerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pager", abstract: "Stand by for a daemon's death.", shouldDisplay: false)

  func run() throws {
    for line in StandbyPager.run(input: Descriptor(owning: 0)) { Output.complain(line) }
  }
}
