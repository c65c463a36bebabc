import Glibc
import WorkerKit

/// A worker with everything that WorkerKit has, for tests under a real daemon:
///
///     WorkerKitProbe SOCKET LOG
///
/// A client that connects to SOCKET sends one command (`Commands`) and gets one line. LOG gets a
/// line for each event. Without arguments the process is a `Hoard`.
@main struct Probe {
  static func main() {
    let arguments = CommandLine.arguments
    if arguments.count == 1 { Hoard.main() }
    guard arguments.count == 3, let log = LogFile(arguments[2]),
      let listener = CommandListener(arguments[1])
    else { exit(2) }
    // The signals are blocked before there is another thread, which a signal would end.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    Task.detached { await run(listener, log) }
    var signal: Int32 = 0
    while sigwait(&signals, &signal) != 0 {}
    log.append("SIGTERM")
    exit(0)
  }

  private static func run(_ listener: CommandListener, _ log: LogFile) async {
    let commands = Commands(log)
    Worker.shared.setSnapshotProvider { .text(commands.shelf.summary) }
    // From here on the loop gets all events.
    var events = Worker.shared.events.makeAsyncIterator()
    Task.detached {
      for await connection in listener.connections() {
        Task.detached { await connection.answer { await commands.perform($0) } }
      }
    }
    Worker.shared.connect()
    Worker.shared.ready()
    while let event = await events.next() { await commands.handle(event) }
  }
}
