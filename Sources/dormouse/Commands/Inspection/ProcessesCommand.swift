import ArgumentParser
import Control
import Glibc
import Linux
import PolicyFile

struct ProcessesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ps", abstract: "List the workers: state, memory, and why.",
    discussion: """
      With names or patterns, only these workers are listed. The exit code is 3 if a name or \
      pattern fits no worker. A terminal that is too narrow for the reasons gets no PID and IMAGE. \
      With --wide no column is left out, and BAND, the position in the order of termination, is \
      added; lines may be longer than the terminal is wide.

      With --watch, a terminal's table is redrawn in place until you press q; --delay is the time \
      between. Elsewhere all tables are printed one after the other, with an empty line between \
      them, and with --json an object each time, until the daemon or the reader ends.

      Examples:
        dormouse ps
        dormouse ps 'bot*' --json
        dormouse ps --state hibernated,suspended --sort saved
        dormouse ps --state failed,backing-off
        dormouse ps --sort cpu --watch -d 5s
      """)
  @Flag(help: "Print only the names, one on each line.") var names = false
  @Option(
    help: ArgumentHelp(
      "Only workers in these states, separated by commas: "
        + "\(workerStates.joined(separator: ", ")); or terminated workers that are "
        + "\(ShownState.kindsOfEnded.joined(separator: ", ")).",
      valueName: "states"),
    completion: .list(allStates.map { $0.replacing(" ", with: "-") }), transform: stateOption)
  var state: Set<String>?
  @Option(
    help: ArgumentHelp(
      "Sort by footprint, name, state, for (time in the state), cpu (measured for 0.5 s) or saved. "
        + "Default: the daemon's order.", valueName: "key"),
    completion: .list(WorkerOrder.allCases.map(\.rawValue)), transform: orderOption)
  var sort: WorkerOrder?
  @Flag(name: .shortAndLong, help: "Show all columns, also BAND.") var wide = false
  @Flag(help: "Show the table again and again.") var watch = false
  @Option(
    name: [.customShort("d"), .long],
    help: ArgumentHelp(
      "With --watch: renew the table this often, 100ms to 1h. Default: 1s.", valueName: "duration"),
    transform: durationOption)
  var delay: Duration?
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "The workers: names, groups (@bots), or patterns such as 'bot0*'.", valueName: "name"),
    completion: .workers)
  var patterns: [String] = []

  func validate() throws {
    if wide, json || names { throw ValidationError("--wide is for the table.") }
    if json, names { throw ValidationError("--json or --names, one of the two.") }
    if watch, names { throw ValidationError("--watch or --names, one of the two.") }
    guard let delay else { return }
    if !watch { throw ValidationError("--delay is for --watch.") }
    guard (.milliseconds(100) ... .seconds(3600)).contains(delay) else {
      throw ValidationError("--delay is from 100ms to 1h.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    var use = ProcessorUse()
    let pause = delay ?? .seconds(1)
    var response = try daemon.ask(.ps)
    // A name that no worker has is an error now, before the screen is cleared.
    _ = try chosen(response)
    if sort == .cpu {
      use.update(WorkerProcessReader.processorTimes(of: response.workers ?? []))
      pauseThread(for: .milliseconds(500))
      response = try daemon.ask(.ps)
    }
    if watch, !json, Terminal.isOutput, isatty(STDIN_FILENO) == 1 {
      let screen = try LiveScreen()
      // The terminal is restored before an error is printed.
      defer { screen.close() }
      return try screen.renew(every: pause, from: &daemon) { response, size, isNew in
        // A worker that was removed meanwhile isn't an error any more.
        let workers = (try? listed(response, &use, isNew: isNew)) ?? []
        return cut(table(workers, response, use: use, width: size.columns), to: size)
      }
    }
    var isFirst = true
    while true {
      let workers = try listed(response, &use, isNew: true)
      try print(workers, response, use: use, isFirst: isFirst)
      if !watch { return }
      isFirst = false
      // A signal ends the pause and this process.
      pauseThread(for: pause)
      response = try daemon.ask(.ps)
    }
  }

  private func print(
    _ workers: [WorkerReport], _ response: ControlResponse, use: ProcessorUse, isFirst: Bool
  ) throws {
    if names { return try Output.write(workers.map { escaped($0.name) + "\n" }.joined()) }
    if json { return try Output.json(Listing(daemon: response.daemon, workers: workers)) }
    let width = wide ? nil : Terminal.width
    try Output.write((isFirst ? "" : "\n") + table(workers, response, use: use, width: width))
  }

  private func table(
    _ workers: [WorkerReport], _ response: ControlResponse, use: ProcessorUse, width: Int?
  ) -> String {
    renderProcessTable(
      workers, daemon: response.daemon, cpu: sort == .cpu ? use.percent : nil, width: width,
      wide: wide, color: Terminal.showsColor)
  }

  /// Returns as many lines as the terminal has.
  private func cut(_ text: String, to size: (columns: Int, rows: Int)) -> [String] {
    let lines = text.split(separator: "\n").map(String.init)
    guard lines.count > size.rows else { return lines }
    let kept = lines.prefix(max(size.rows - 1, 0))
    let more = "… and \(lines.count - kept.count) more lines; `dormouse top` can scroll"
    return kept + [shortened(more, to: size.columns)]
  }

  /// Returns the workers that the arguments choose, in the daemon's order.
  private func chosen(_ response: ControlResponse) throws -> [WorkerReport] {
    let workers = response.workers ?? []
    let named = patterns.isEmpty ? workers : try WorkerPatterns(patterns).workers(among: workers)
    guard let state else { return named }
    return named.filter { state.contains($0.state) || state.contains(ShownState(of: $0).kind) }
  }

  /// Returns the workers that the arguments choose, sorted.
  private func listed(
    _ response: ControlResponse, _ use: inout ProcessorUse, isNew: Bool
  ) throws -> [WorkerReport] {
    let workers = try chosen(response)
    guard let sort else { return workers }
    if sort == .cpu, isNew { use.update(WorkerProcessReader.processorTimes(of: workers)) }
    return sort.sorted(workers, cpu: use.percent)
  }
}

/// The engine's states, and the table's words for workers that have ended.
private let allStates = workerStates + ShownState.kindsOfEnded

@Sendable private func stateOption(_ text: String) throws -> Set<String> {
  let states = text.split(separator: ",", omittingEmptySubsequences: false).map {
    $0.trimmingBlanks.lowercased().replacing("-", with: " ")
  }
  for state in states where !allStates.contains(state) {
    throw unknown("state", state, allowed: allStates)
  }
  return Set(states)
}

@Sendable private func orderOption(_ text: String) throws -> WorkerOrder {
  if let order = WorkerOrder(rawValue: text.lowercased()) { return order }
  throw unknown("key", text, allowed: WorkerOrder.allCases.map(\.rawValue))
}

private func unknown(_ what: String, _ word: String, allowed: [String]) -> ValidationError {
  let hint = nearest(to: word, among: allowed).map { "; did you mean `\($0)`?" }
  let list = "; there are \(allowed.joined(separator: ", "))"
  return ValidationError("`\(escaped(word))` is no \(what)\(hint ?? list)")
}

extension Substring {
  var trimmingBlanks: Substring {
    let start = drop { $0 == " " }
    return start.lastIndex { $0 != " " }.map { start[...$0] } ?? ""
  }
}
