import ArgumentParser
import Hibernation
import Linux

/// The keeper, a process that the daemon starts. It keeps workers' memory descriptors, which the
/// next daemon needs to resume sleeping workers.
struct KeeperCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keeper", abstract: "Keep descriptors for the next daemon.", shouldDisplay: false)

  @Argument(help: "The socket at which the next daemon asks.")
  var path: String

  func run() throws {
    do throws(SystemCallError) {
      try DescriptorKeeping.run(input: Descriptor(owning: 0), path: path)
    } catch { Output.complain("keeper: \(error)") }
  }
}
