/// `dormouse top` without a terminal, a daemon or a clock: keys, reports and sizes come in; lines of the screen and
/// requests to the daemon go out.
package struct TopModel: Sendable {
  enum Mode: Hashable {
    case list
    /// A filter is typed.
    case filter
    case question(TopAction, worker: String)
    case help
  }

  struct Message: Hashable {
    var text: String
    var isFailure = false
  }

  package var columns: Int
  package var rows: Int
  package let showsUnicode: Bool
  /// For how long the daemon has owed an answer to the last look.
  package var secondsWaited: Double = 0
  /// q was pressed.
  package internal(set) var hasEnded = false

  var mode = Mode.list
  /// nil: the daemon hasn't answered yet.
  var workers: [WorkerReport]?
  var daemon: DaemonReport?
  var cpu: [String: Double] = [:]
  var history = MemoryHistory()

  package internal(set) var order = WorkerOrder.footprint
  var isReversed = false
  /// Of names, states, hosts and projects.
  package internal(set) var filter = ""
  /// Those that fit the filter, in the order that was chosen.
  var shown: [WorkerReport] = []
  /// By name, so that a worker stays selected when the order changes.
  package internal(set) var selected: String? {
    didSet { if selected != oldValue { scrolledBack = 0 } }
  }
  /// Its place in `shown`.
  var place = 0
  /// The first worker on the screen.
  var first = 0
  /// Workers on the screen when it was last drawn.
  var page = 10

  package internal(set) var pane: TopPane? {
    didSet { if pane != oldValue { scrolledBack = 0 } }
  }
  /// The pane is shown without the list.
  var isWhole = false
  /// Rows of the log after those on the screen; 0: new lines are followed.
  var scrolledBack = 0
  /// Rows by which a key scrolls the log: half of those that were shown last.
  var logPage = 10
  var processes: TopProcesses?
  var log: TopLog?
  var others: TopOthers?
  var status: WorkerReport?
  var message: Message?

  package init(columns: Int, rows: Int, showsUnicode: Bool = true, pane: TopPane? = nil) {
    self.columns = columns
    self.rows = rows
    self.showsUnicode = showsUnicode
    self.pane = pane
  }

  var worker: WorkerReport? { shown.indices.contains(place) ? shown[place] : nil }

  // MARK: what comes in

  /// The answer to a look (`ps`).
  package mutating func show(_ workers: [WorkerReport], _ daemon: DaemonReport?) {
    self.workers = workers
    self.daemon = daemon
    history.add(workers, daemon)
    arrange()
  }

  /// Percent of a processor, by worker.
  package mutating func show(cpu: [String: Double]) {
    self.cpu = cpu
    if order == .cpu { arrange() }
  }

  package mutating func show(_ processes: TopProcesses) { self.processes = processes }

  package mutating func show(_ log: TopLog) { self.log = log }

  package mutating func show(_ others: TopOthers) { self.others = others }

  /// The answer to `status` of a worker.
  package mutating func show(status: WorkerReport?) { self.status = status }

  /// The answer to a request; returns those that follow from it.
  package mutating func answer(_ response: ControlResponse, to request: TopRequest) -> [TopRequest]
  {
    let isDone = response.result == .done
    message = Message(text: escaped(response.text), isFailure: !isDone)
    guard isDone, request.action == .restart, request.verb == .stop else { return [] }
    return [TopRequest(action: .restart, verb: .restart, worker: request.worker)]
  }

  // MARK: what the open pane shows, and has to be read for it

  package var wantedProcesses: WorkerReport? { pane == .processes ? worker : nil }
  /// A log in which you have scrolled back stays as it is.
  package var wantedLog: WorkerReport? {
    pane != .log || scrolledBack > 0 && log?.worker == selected ? nil : worker
  }
  /// Processes of these aren't shown.
  package var wantedOthers: [WorkerReport]? { pane == .others ? workers : nil }
  package var wantedStatus: String? { pane == .memory ? selected : nil }

  // MARK: the order

  /// After a change of the workers, the filter or the order.
  mutating func arrange() {
    shown = order.sorted((workers ?? []).filter(fits), cpu: cpu, isReversed: isReversed)
    if let selected, let now = shown.firstIndex(where: { $0.name == selected }) {
      place = now
    } else {
      select(place)
    }
  }

  mutating func select(_ wanted: Int) {
    place = max(min(wanted, shown.count - 1), 0)
    selected = worker?.name
  }

  private func fits(_ worker: WorkerReport) -> Bool {
    if filter.isEmpty { return true }
    let wanted = filter.lowercased()
    return [worker.name, worker.state, worker.host, worker.directory].contains {
      $0?.lowercased().contains(wanted) == true
    }
  }
}
