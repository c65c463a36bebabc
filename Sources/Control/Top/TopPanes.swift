/// The pane of `top`, beside or below the list: details of the selected worker, or of the machine.
extension TopModel {
  /// True if there is something to show in the pane.
  var hasPane: Bool { pane != nil && (worker != nil || pane?.isOfMachine == true) }

  /// The lines of the pane, at most as many as the layout has room for, with its title.
  mutating func paneLines(_ layout: TopLayout, _ color: Bool) -> [String] {
    guard layout.position != .none, let pane else { return [] }
    let content =
      switch (pane, worker) {
      case (.processes, let worker?): processLines(worker, layout)
      case (.log, let worker?): logLines(worker, layout)
      case (.memory, let worker?): memoryLines(worker, layout)
      default: otherLines(layout)
      }
    return framed(content, in: layout, color: color)
  }

  private func framed(_ content: Content, in layout: TopLayout, color: Bool) -> [String] {
    let (title, lines) = content
    let maxLines = layout.paneRows
    var shown = lines.map { shortened($0, to: layout.paneColumns) }
    if shown.count > maxLines - 1 {
      let hidden = shown.count - maxLines + 2
      shown = Array(shown.prefix(max(maxLines - 2, 0)))
      shown.append(shortened("… and \(hidden) more lines", to: layout.paneColumns))
    }
    return [rule(title, columns: layout.paneColumns, color: color)] + shown
  }

  /// A line such as `── log of web ─────`.
  private func rule(_ title: String, columns: Int, color: Bool) -> String {
    let stroke = showsUnicode ? "─" : "-"
    let text = shortened("\(stroke)\(stroke) \(title) ", to: columns)
    let line = text + String(repeating: stroke, count: max(columns - displayWidth(text), 0))
    return Color.bold.paint(line, if: color)
  }

  private typealias Content = (title: String, lines: [String])

  // MARK: processes

  private func processLines(_ worker: WorkerReport, _ layout: TopLayout) -> Content {
    let name = escaped(worker.name)
    let title = "processes of \(name)"
    if worker.pid == nil { return (title, ["\(name) has no process"]) }
    guard let processes, processes.worker == worker.name else { return (title, ["reading …"]) }
    guard !processes.processes.isEmpty else {
      return (title, ["none of its processes can be seen from here"])
    }
    var table = Table(columns: [.number("PID"), .number("FOOTPRINT"), "PROCESS"])
    table.rows = Self.tree(processes.processes, unicode: showsUnicode).map { branch, process in
      let footprint = process.footprint.map(sizeText) ?? "?"
      return [.init("\(process.pid)"), .init(footprint), .init(branch + escaped(process.name))]
    }
    let sum = processes.processes.reduce(0) { $0 + ($1.footprint ?? 0) }
    let total = "\(processes.processes.count), \(sizeText(sum))"
    return ("\(title): \(total)", table.lines(width: layout.paneColumns, color: false))
  }

  /// Each process below its parent, with the lines of the tree before its name.
  static func tree(
    _ processes: [TopProcesses.Process], unicode: Bool
  ) -> [(branch: String, process: TopProcesses.Process)] {
    let present = Set(processes.map(\.pid))
    let children = Dictionary(grouping: processes.sorted { $0.pid < $1.pid }) {
      present.contains($0.parent) && $0.parent != $0.pid ? $0.parent : 0
    }
    var lines: [(branch: String, process: TopProcesses.Process)] = []
    var placed: Set<Int32> = []
    func add(_ siblings: [TopProcesses.Process], indent: String, isRoot: Bool) {
      for (index, process) in siblings.enumerated() where placed.insert(process.pid).inserted {
        let isLast = index == siblings.count - 1
        let branch = unicode ? (isLast ? "└─ " : "├─ ") : (isLast ? "`- " : "|- ")
        let below = isLast ? "   " : (unicode ? "│  " : "|  ")
        lines.append((isRoot ? "" : indent + branch, process))
        add(
          children[process.pid] ?? [], indent: isRoot ? "" : indent + below, isRoot: false)
      }
    }
    add(children[0] ?? [], indent: "", isRoot: true)
    // If parents changed while they were read, they can form a cycle.
    return lines + processes.filter { !placed.contains($0.pid) }.map { ("", $0) }
  }

  // MARK: other processes

  private func otherLines(_ layout: TopLayout) -> Content {
    let title = "largest processes of no worker"
    guard let others else { return (title, ["reading …"]) }
    if let problem = others.problem { return (title, [escaped(problem)]) }
    if others.processes.isEmpty { return (title, ["none can be seen from here"]) }
    var table = Table(columns: [.number("PID"), .number("RESIDENT"), "PROCESS"])
    table.rows = others.processes.map {
      [.init("\($0.pid)"), .init(sizeText($0.resident)), .init(escaped($0.name))]
    }
    return (title, table.lines(width: layout.paneColumns, color: false))
  }

  // MARK: the log

  private mutating func logLines(_ worker: WorkerReport, _ layout: TopLayout) -> Content {
    let name = escaped(worker.name)
    let title = "log of \(name)"
    guard let path = worker.log else { return (title, ["\(name) has no log"]) }
    guard let log, log.worker == worker.name else { return (title, ["reading …"]) }
    if let problem = log.problem {
      return (title, wrapped(escaped(problem), to: layout.paneColumns))
    }
    let rows = layout.paneRows - 1
    logPage = max(rows / 2, 1)
    let shown = log.rows(rows, columns: layout.paneColumns, back: &scrolledBack)
    if shown.isEmpty { return ("\(title), \(escaped(path))", ["it is empty"]) }
    let position =
      scrolledBack > 0
      ? "\(counted(scrolledBack, "row")) before its end, g follows it" : escaped(path)
    return ("\(title), \(position)", shown)
  }

  // MARK: memory

  private func memoryLines(_ worker: WorkerReport, _ layout: TopLayout) -> Content {
    let name = escaped(worker.name)
    let title = "memory of \(name)"
    if worker.state == "terminated" { return (title, ["\(name) is not running"]) }
    // The report of `ps` has what was in swap at the last measurement, if anything was.
    let measured = worker.trim?.swapped
    let swapped = status?.name == worker.name ? status?.swapped ?? measured : measured
    let kinds: [(label: String, bytes: Int64?, meaning: String)] = [
      ("footprint", worker.footprint, "peak \(sizeText(worker.peakFootprint))"),
      ("swapped", swapped, "part of the footprint"),
      ("reclaimable", worker.reclaimable, "file pages, not in the footprint"),
      ("purgeable", worker.purgeable, "offered by the worker, can be taken"),
      ("saved", worker.saved, "moved to disk by hibernation"),
      ("image", worker.imageSize, "on disk"),
      ("base", worker.baseSize, "on disk, for its next image"),
    ]
    let present = kinds.compactMap { kind in kind.bytes.map { (kind.label, $0, kind.meaning) } }
    let highest = present.map(\.1).max() ?? 0
    let (labels, sizes, notes) = (11, 9, 35)
    let room = min(max(layout.paneColumns - labels - sizes - notes - 6, 0), 40)
    let lines = present.map { label, bytes, meaning in
      let size = padded(sizeText(bytes), to: sizes, alignsRight: true)
      let curve = bar(bytes, of: highest, width: room)
      return "\(padded(label, to: labels))  \(size)  \(curve)  \(meaning)"
    }
    let savings = status?.name == worker.name ? savingsLines(status?.savings) : []
    let trims = worker.trimText.map { wrapped("trims: \($0)", to: layout.paneColumns) } ?? []
    return (title, lines + savings + trims)
  }

  private func bar(_ value: Int64, of highest: Int64, width: Int) -> String {
    guard highest > 0 else { return padded("", to: width) }
    let share = Double(max(value, 0)) / Double(highest) * Double(width)
    let length = value > 0 ? max(Int(share.rounded()), min(1, width)) : 0
    return padded(String(repeating: showsUnicode ? "█" : "#", count: length), to: width)
  }
}
