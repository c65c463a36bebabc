import ArgumentParser
import Control
import JSONLines

/// The JSON of `ps` and `status`.
struct Listing: Encodable {
  var daemon: DaemonReport?
  var workers: [WorkerReport]?
}

/// The JSON of `status NAME`: the worker's report, and with `--verbose` one more key.
struct DetailedWorker: Encodable {
  var worker: WorkerReport
  var dirtyMemory: DirtyMemoryReport?

  private enum Keys: CodingKey { case dirtyMemory }

  func encode(to encoder: any Encoder) throws {
    try worker.encode(to: encoder)
    var top = encoder.container(keyedBy: Keys.self)
    try top.encodeIfPresent(dirtyMemory, forKey: .dirtyMemory)
  }
}

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show one worker in detail, or the daemon and the machine.")
  @Flag(help: "Print only the worker's snapshot of itself: a text, or the bytes of a picture.")
  var snapshot = false
  @Flag(
    name: .shortAndLong,
    help:
      "Also show what the worker's dirty memory is mapped for, as `dormouse footprint NAME` does.")
  var verbose = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker. Default: the daemon and the machine.", completion: .workers)
  var name: String?

  func validate() throws {
    if snapshot, json || name == nil {
      throw ValidationError("--snapshot takes a worker, and no --json.")
    }
    if verbose, snapshot || name == nil {
      throw ValidationError("--verbose takes a worker, and no --snapshot.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    guard let name else {
      let response = try daemon.ask(.status)
      guard let report = response.daemon else { throw CommandFailure.noReport(of: "the daemon") }
      if json { return try Output.json(Listing(daemon: report, workers: response.workers)) }
      return try Output.show {
        renderDaemonStatus(report, workers: response.workers, width: $0, color: $1)
      }
    }
    let worker = try daemon.ask(.status, worker: name, for: \.workers?.first) {
      $0.withSnapshot = snapshot ? true : nil
    }
    if snapshot { return try writeSnapshot(worker.snapshot, of: name) }
    let memory = verbose ? try DirtyMemoryReport(of: worker) : nil
    if json { return try Output.json(DetailedWorker(worker: worker, dirtyMemory: memory)) }
    try Output.show { renderWorkerStatus(worker, width: $0, color: $1) }
    guard let memory else { return }
    try Output.show { "\n" + renderDirtyMemory(memory, width: $0, color: $1) }
  }

  private func writeSnapshot(_ snapshot: SnapshotReport?, of name: String) throws {
    guard let snapshot else {
      throw CommandFailure(.notDone, "\(escaped(name)) has reported no snapshot")
    }
    if let text = snapshot.text {
      // A terminal gets the text escaped: text from a worker must not move the cursor.
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      let safe = lines.map { escaped(String($0)) }.joined(separator: "\n")
      return try Output.line(Terminal.isOutput ? safe : text)
    }
    if Terminal.isOutput {
      let what = "\(escaped(snapshot.mime)), \(sizeText(snapshot.size))"
      throw CommandFailure(
        .notDone, "its snapshot is a picture (\(what)); redirect the output to a file")
    }
    try Output.write(Base64.decode(snapshot.data ?? "") ?? [])
  }
}
