import Linux

/// The action of a key of `top` on the selected worker. The keys are capital letters, so that a
/// mistyped key changes nothing.
package enum TopAction: Character, Hashable, Sendable, CaseIterable {
  case wake = "W"
  case suspend = "S"
  case hibernate = "H"
  case foreground = "F"
  case background = "B"
  case restart = "R"
  case terminate = "T"
  /// Protects the worker, or removes its protection.
  case protect = "P"

  package var name: String { "\(self)" }

  /// The verb of the first request. A restart is a stop, and a start after its success.
  func verb(isProtected: Bool = false) -> ControlRequest.Verb {
    switch self {
    case .wake: .wake
    case .suspend: .suspend
    case .hibernate: .hibernate
    case .foreground: .foreground
    case .background: .background
    case .restart: .stop
    case .terminate: .terminate
    case .protect: isProtected ? .unprotect : .protect
    }
  }

  /// The question that `top` asks before the action; nil if the action needs none.
  func question(about worker: String) -> String? {
    let name = escaped(worker)
    switch self {
    case .restart: return "restart \(name)? It is stopped and launched again. y/n"
    case .terminate:
      return "terminate \(name)? It ends as for a lack of memory, and is not woken first. y/n"
    default: return nil
    }
  }
}

/// A request that `top` sends to the daemon because of a key.
package struct TopRequest: Hashable, Sendable {
  package var action: TopAction
  package var verb: ControlRequest.Verb
  package var worker: String
}

/// Something that is shown beside or below the list.
package enum TopPane: Character, Hashable, Sendable, CaseIterable {
  case processes = "t"
  case log = "l"
  case memory = "m"
  case others = "o"

  /// True if it doesn't depend on the selected worker.
  var isOfMachine: Bool { self == .others }

  /// The pane that is open at the beginning; nil if a small screen has room for the list alone.
  package static func first(rows: Int) -> TopPane? { rows >= 20 ? .log : nil }
}

/// The largest processes of the machine that belong to no worker.
package struct TopOthers: Hashable, Sendable {
  /// The processes, the largest first.
  package var processes: [SizedProcess]
  /// The reason why they can't be read.
  package var problem: String?

  package init(processes: [SizedProcess], problem: String? = nil) {
    self.processes = processes
    self.problem = problem
  }
}

/// A worker's processes at one moment.
package struct TopProcesses: Hashable, Sendable {
  package var worker: String
  package var processes: [Process]

  package struct Process: Hashable, Sendable {
    package var pid: Int32
    package var parent: Int32
    /// The kernel's name of the process, at most 15 bytes.
    package var name: String
    /// In bytes; nil if it may not be measured.
    package var footprint: Int64?

    package init(pid: Int32, parent: Int32, name: String, footprint: Int64?) {
      self.pid = pid
      self.parent = parent
      self.name = name
      self.footprint = footprint
    }
  }

  package init(worker: String, processes: [Process]) {
    self.worker = worker
    self.processes = processes
  }
}

/// The end of a worker's log.
package struct TopLog: Hashable, Sendable {
  package var worker: String
  /// The lines, the latest last.
  package var lines: [String]
  /// The reason why the log can't be read.
  package var problem: String?

  package init(worker: String, lines: [String], problem: String? = nil) {
    self.worker = worker
    self.lines = lines
    self.problem = problem
  }
}
