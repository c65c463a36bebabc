import Glibc
import WorkerKit

/// A travel journal: the talks' demo, as a worker of Dormouse.
@main enum Breadcrumbs {
  static func main() async {
    let options: Options
    do {
      options = try Options(CommandLine.arguments.dropFirst()) { name in
        getenv(name).map { String(cString: $0) }
      }
    } catch {
      refuse(error)
    }
    do {
      try await run(options)
    } catch {
      say("\(error)")
      exit(1)
    }
  }

  private static func refuse(_ problem: Options.Problem) -> Never {
    switch problem {
    case .help:
      File.writeAll(Array((Options.usage + "\n").utf8), to: 1)
      exit(0)
    case .bad(let problem):
      say("\(problem)\n\(Options.usage)")
      exit(64)
    }
  }

  private static func run(_ options: Options) async throws {
    Signals.catchThem()
    let album = Album(directory: options.data)
    guard File.makeDirectory(options.data) else {
      throw PhotoError(description: "\(options.data) can't be made")
    }
    try album.prepare()
    let listener = try Listener.given() ?? options.port.map { port in try Listener(port: port) }
    let journal = try Journal(path: "\(options.data)/journal.sqlite")
    let app = try App(album: album, journal: journal, isBroken: options.isBroken)

    Worker.shared.setSnapshotProvider { try? .text(await app.snapshot()) }
    Worker.shared.connect(delegate: app)
    Worker.shared.ready()
    var server = Server(app: app, album: album, listener: listener)
    await server.run()
    _ = await app.perform(.quit)
  }
}

/// Prints a text to standard error, after the program's name.
func say(_ text: String) {
  File.writeAll(Array("Breadcrumbs: \(text)\n".utf8), to: 2)
}
