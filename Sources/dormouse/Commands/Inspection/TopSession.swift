import ArgumentParser
import Control
import Linux

/// The screen of `dormouse top`. It passes keys and answers to the model, and the model's lines to
/// the terminal. It never waits for the daemon alone.
struct TopSession: ~Copyable {
  private var daemon: DaemonConnection
  private let screen: LiveScreen
  private let reader: BackgroundReader
  private let delay: Duration
  /// The number of tables until it ends; nil for no limit.
  private let count: Int?
  private var model: TopModel
  private var keys = KeyReader()
  private var use = ProcessorUse()

  /// The request for the table that the daemon hasn't answered, and the time at which it was sent.
  private var asked: (id: UInt64, at: Int64)?
  private var status: UInt64?
  private var requests: [UInt64: TopRequest] = [:]
  private var answered = 0
  private var nextPoll = Deadline(in: .zero)
  private var nextPane = Deadline(in: .zero)
  private var shown: [String] = []

  /// Shows the screen until the user quits it.
  static func show(
    _ connection: ConnectionOptions, delay: Duration = .seconds(1), count: Int? = nil
  ) throws {
    let daemon = try connection.connect()
    let screen = try LiveScreen()
    // The terminal is restored before an error is printed.
    defer { screen.close() }
    let size = Terminal.size
    // The reader is created after the screen, because its threads mustn't get the screen's signals.
    var session = TopSession(
      daemon: daemon, screen: screen, reader: try BackgroundReader(), delay: delay, count: count,
      model: TopModel(
        columns: size.columns, rows: size.rows, showsUnicode: Terminal.showsUnicode,
        pane: .first(rows: size.rows)))
    try session.run()
  }

  mutating func run() throws {
    while true {
      try receive()
      try poll()
      try draw()
      if let count, answered >= count { return }
      // The descriptor stays readable after the daemon's end, which the next request reports.
      let isWaiting = asked != nil || status != nil || !requests.isEmpty
      let input = try screen.wait(
        until: nextMoment,
        orFor: isWaiting ? [daemon.client.descriptor, reader.descriptor] : [reader.descriptor])
      // The exit code is the one by which a shell reports a program that a signal has ended.
      if let number = input.signal { throw ExitCode(128 + number) }
      if input.hasEnded { return }
      if input.isResized {
        let size = Terminal.size
        (model.columns, model.rows) = (size.columns, size.rows)
        shown = []
      }
      try press(input.bytes)
      if model.hasEnded { return }
    }
  }

  // MARK: keys

  private mutating func press(_ bytes: [UInt8]) throws {
    // Bytes that follow an Escape at once belong to it.
    let pressed = bytes.isEmpty && keys.isWaiting ? keys.finish() : keys.keys(in: bytes)
    if pressed.isEmpty { return }
    let (selected, pane, log) = (model.selected, model.pane, model.wantedLog?.name)
    for key in pressed { try send(model.press(key)) }
    if model.selected != selected || model.pane != pane || model.wantedLog?.name != log {
      nextPane = Deadline(in: .zero)
    }
  }

  private mutating func send(_ wanted: [TopRequest]) throws {
    for request in wanted {
      requests[try daemon.client.send(request.verb, worker: request.worker)] = request
    }
  }

  // MARK: answers

  private mutating func receive() throws {
    if let (id, _) = asked, let response = try daemon.response(to: id, within: .zero) {
      guard response.result == .done else { throw CommandFailure(response) }
      asked = nil
      answered += 1
      let workers = response.workers ?? []
      model.show(workers, response.daemon)
      reader.read(about: "processor times") {
        .processorTimes(WorkerProcessReader.processorTimes(of: workers))
      }
      // The second table follows soon after the first one, which shows no processor time.
      nextPoll = Deadline(in: answered == 1 ? min(delay, .milliseconds(500)) : delay)
    }
    if let id = status, let response = try daemon.response(to: id, within: .zero) {
      status = nil
      model.status = response.workers?.first
    }
    for (id, request) in requests {
      guard let response = try daemon.response(to: id, within: .zero) else { continue }
      requests[id] = nil
      try send(model.answer(response, to: request))
      // A change by the request is shown at once.
      nextPoll = Deadline(in: .zero)
    }
    for update in reader.drain() {
      switch update {
      case .processorTimes(let readings):
        use.update(readings)
        model.show(cpu: use.percent)
      case .processes(let processes): model.processes = processes
      case .log(let log): model.log = log
      case .others(let others): model.others = others
      }
    }
  }

  // MARK: polls

  private mutating func poll() throws {
    if asked == nil, nextPoll.hasPassed {
      asked = (try daemon.client.send(.ps), Clocks.monotonic)
    }
    model.secondsWaited = asked.map { Double(Clocks.monotonic - $0.at) / 1e9 } ?? 0
    guard nextPane.hasPassed else { return }
    nextPane = Deadline(in: model.pane == .log ? .milliseconds(250) : min(delay, .seconds(1)))
    if let worker = model.wantedProcesses {
      reader.read(about: "processes of \(worker.name)") {
        .processes(WorkerProcessReader.processes(of: worker))
      }
    }
    if let worker = model.wantedLog {
      reader.read(about: worker.name, isLog: true) { .log(WorkerProcessReader.log(of: worker)) }
    }
    if let workers = model.wantedOthers {
      reader.read(about: "other processes") { .others(WorkerProcessReader.others(than: workers)) }
    }
    if let name = model.wantedStatus, status == nil {
      status = try daemon.client.send(.status, worker: name)
    }
  }

  /// The time at which something must be done even if no event arrives.
  private var nextMoment: Deadline {
    // An unfinished key sequence ends after 50 ms. While the daemon is waited for, the time is
    // shown.
    if keys.isWaiting { return Deadline(in: .milliseconds(50)) }
    let table = asked == nil ? nextPoll : Deadline(in: .seconds(1))
    return model.pane == nil ? table : min(table, nextPane)
  }

  private mutating func draw() throws {
    let lines = model.screen(color: Terminal.showsColor)
    if lines == shown { return }
    shown = lines
    try screen.show(lines)
  }
}
