import ArgumentParser
import Control
import Linux

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

extension DirtyMemoryReport {
  private static let maxGroups = 10

  init(of worker: WorkerReport) throws {
    var mappings = DirtyMappings()
    var problem: FootprintError?
    var unreadable = 0
    for pid in WorkerProcessReader.pids(of: worker) {
      do throws(FootprintError) { _ = try mappings.add(pid) } catch {
        problem = error
        unreadable += 1
      }
    }
    if mappings.processes == 0, let problem {
      throw CommandFailure(.notDone, escaped("\(problem)"))
    }
    self.init(
      worker: worker.name, processes: mappings.processes, unreadable: unreadable,
      all: mappings.largestFirst.map {
        Mappings(
          kind: $0.kind.rawValue, name: $0.name.isEmpty ? nil : $0.name, dirty: $0.dirty,
          swapped: $0.swapped, count: $0.mappings)
      }, maxMappings: Self.maxGroups)
  }
}
