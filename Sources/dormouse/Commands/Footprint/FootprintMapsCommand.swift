import ArgumentParser
import Control

struct FootprintMapsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "maps",
    abstract: "Show what a worker's dirty memory is mapped for: heap, stacks, files.",
    discussion: """
      It shows the ten largest groups of mappings over all of the worker's processes, and the sum \
      of the others. Dirty memory is what would be free if the worker ended; pages that several \
      processes share aren't in it. It is read from /proc, and no page of the worker is touched, \
      so a hibernated worker stays on disk. `maps` may be left out.

      Examples:
        dormouse footprint web
        dormouse footprint maps web --json
      """)
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker.", completion: .workers) var name: String

  func run() throws {
    var daemon = try connection.connect()
    let worker = try daemon.ask(.status, worker: name, for: \.workers?.first)
    try Output.show(DirtyMemoryReport(of: worker), asJSON: json) {
      renderDirtyMemory($0, width: $1, color: $2)
    }
  }
}
