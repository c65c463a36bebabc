/// The state of `dormouse top`, without a terminal, a daemon or a clock. Its input is keys, reports
/// and sizes. Its output is lines of the screen and requests to the daemon.
package struct TopModel: Sendable {
  enum Mode: Hashable {
    case list
    /// A filter is being typed.
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
  /// The time for which the daemon hasn't responded to the last request, in seconds.
  package var secondsWaited: Double = 0
  /// True when the user has quit.
  package internal(set) var hasEnded = false

  var mode = Mode.list
  /// The workers of the last response; nil before the first.
  var workers: [WorkerReport]?
  var daemon: DaemonReport?
  var cpu: [String: Double] = [:]
  var history = MemoryHistory()

  package internal(set) var order = WorkerOrder.footprint
  var isReversed = false
  /// The text that names, states, hosts or projects of the shown workers contain.
  package internal(set) var filter = ""
  /// The workers that match the filter, in the chosen order.
  var shown: [WorkerReport] = []
  /// The name of the selected worker. It stays selected when the order changes.
  package internal(set) var selected: String? {
    didSet { if selected != oldValue { scrolledBack = 0 } }
  }
  /// The index of the selected worker in `shown`.
  var selectedIndex = 0
  /// The index of the first worker on the screen.
  var first = 0
  /// The number of workers on the screen when it was last drawn.
  var page = 10

  package internal(set) var pane: TopPane? {
    didSet { if pane != oldValue { scrolledBack = 0 } }
  }
  /// True if the pane is shown without the list.
  var isWhole = false
  /// The number of rows of the log after those on the screen. At 0, new lines are followed.
  var scrolledBack = 0
  /// The number of rows by which a key scrolls the log: half of those that were last shown.
  var logPage = 10
  package var processes: TopProcesses?
  package var log: TopLog?
  package var others: TopOthers?
  /// The response to `status` of a worker.
  package var status: WorkerReport?
  var message: Message?

  package init(columns: Int, rows: Int, showsUnicode: Bool = true, pane: TopPane? = nil) {
    self.columns = columns
    self.rows = rows
    self.showsUnicode = showsUnicode
    self.pane = pane
  }

  var worker: WorkerReport? { shown.indices.contains(selectedIndex) ? shown[selectedIndex] : nil }

  // MARK: what comes in

  /// Shows a new sample: the response to `ps`.
  package mutating func show(_ workers: [WorkerReport], _ daemon: DaemonReport?) {
    self.workers = workers
    self.daemon = daemon
    history.add(workers, daemon)
    arrange()
  }

  /// Shows processor use in percent, by worker.
  package mutating func show(cpu: [String: Double]) {
    self.cpu = cpu
    if order == .cpu { arrange() }
  }

  /// Shows the response to a request. Returns the requests that follow from it.
  package mutating func answer(_ response: ControlResponse, to request: TopRequest) -> [TopRequest]
  {
    let isDone = response.result == .done
    message = Message(text: escaped(response.text), isFailure: !isDone)
    guard isDone, request.action == .restart, request.verb == .stop else { return [] }
    return [TopRequest(action: .restart, verb: .restart, worker: request.worker)]
  }

  // MARK: what must be read for the open pane

  package var wantedProcesses: WorkerReport? { pane == .processes ? worker : nil }
  /// A log in which the user has scrolled back isn't read again.
  package var wantedLog: WorkerReport? {
    pane != .log || scrolledBack > 0 && log?.worker == selected ? nil : worker
  }
  /// The workers whose processes aren't shown.
  package var wantedOthers: [WorkerReport]? { pane == .others ? workers : nil }
  package var wantedStatus: String? { pane == .memory ? selected : nil }

  // MARK: the order

  /// Sorts and filters the workers again, after they, the filter or the order changed.
  mutating func arrange() {
    shown = order.sorted((workers ?? []).filter(fits), cpu: cpu, isReversed: isReversed)
    if let selected, let now = shown.firstIndex(where: { $0.name == selected }) {
      selectedIndex = now
    } else {
      select(selectedIndex)
    }
  }

  mutating func select(_ wanted: Int) {
    selectedIndex = max(min(wanted, shown.count - 1), 0)
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
