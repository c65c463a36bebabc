import Policy

/// The rule that a process belongs to.
struct RuleChoice: Hashable, Sendable {
  /// Its place among the rules.
  var rule: Int
  var condition: Condition

  enum Condition: Hashable, Sendable {
    case met
    /// It matches when this has passed (`older_than`).
    case tooYoung(for: Duration)
    /// It matches if it grows (`min_footprint`).
    case tooSmall(ByteCount?, least: ByteCount)

    /// Of several patterns the nearest counts.
    var rank: Int {
      switch self {
      case .met: 0
      case .tooYoung: 1
      case .tooSmall: 2
      }
    }
  }
}

/// Decides which rule a process belongs to. A rule asks only for what it names.
struct RuleMatching: Sendable {
  var rules: [AdoptionRule]
  /// The numbers of users that the rules name. A name without a number matches no process.
  var users: [ProcessPattern.User: UInt32]

  init(_ rules: [AdoptionRule], users: [ProcessPattern.User: UInt32] = [:]) {
    self.rules = rules
    self.users = users
  }

  /// The first rule of which all but age and footprint fits decides, and no later one is asked. nil: none.
  ///
  /// - Parameter isAdopted: the process is a worker of a rule already: while it sleeps it has another footprint,
  ///   and age and footprint aren't looked at.
  func choose(_ process: ProcessObservation, isAdopted: Bool = false) -> RuleChoice? {
    for (index, rule) in rules.enumerated() {
      let conditions = rule.matches.compactMap { condition($0, of: process, isAdopted) }
      guard let best = conditions.min(by: { $0.rank < $1.rank }),
        !rule.exceptions.contains(where: { excludes($0, from: process, isAdopted) })
      else { continue }
      return RuleChoice(rule: index, condition: best)
    }
    return nil
  }

  private func excludes(
    _ pattern: ProcessPattern, from process: ProcessObservation, _ isAdopted: Bool
  ) -> Bool {
    if isAdopted, pattern.olderThan != nil || pattern.minFootprint != nil { return false }
    return condition(pattern, of: process, isAdopted) == .met
  }

  /// The cheapest to read first. nil: it doesn't match.
  private func condition(
    _ pattern: ProcessPattern, of process: ProcessObservation, _ isAdopted: Bool
  ) -> RuleChoice.Condition? {
    guard Self.fits(pattern.name, process.name), fits(pattern.user, process),
      pattern.command.isEmpty || Self.fits(pattern.command, process.command),
      pattern.executable.isEmpty || Self.fits(pattern.executable, process.executable),
      fitsGroup(pattern, process)
    else { return nil }
    if isAdopted { return .met }
    if let least = pattern.olderThan, process.age < least {
      return .tooYoung(for: least - process.age)
    }
    if let least = pattern.minFootprint {
      let footprint = process.footprint
      if footprint.map({ $0 < least }) ?? true { return .tooSmall(footprint, least: least) }
    }
    return .met
  }

  private static func fits(_ globs: [Glob], _ text: String?) -> Bool {
    globs.isEmpty || (text.map { text in globs.contains { $0.matches(text) } } ?? false)
  }

  private func fits(_ user: ProcessPattern.User?, _ process: ProcessObservation) -> Bool {
    guard let user else { return true }
    let wanted: UInt32?
    if case .number(let number) = user { wanted = number } else { wanted = users[user] }
    return wanted != nil && wanted == process.user
  }

  private func fitsGroup(_ pattern: ProcessPattern, _ process: ProcessObservation) -> Bool {
    if pattern.cgroup.isEmpty, pattern.unit.isEmpty { return true }
    let group = process.cgroup
    return Self.fits(pattern.cgroup, group)
      && Self.fits(pattern.unit, group.flatMap(Self.unit(ofGroup:)))
  }

  /// `/user.slice/user@1000.service/app.slice/jupyter.service/worker` → `jupyter.service`. A slice holds units and
  /// no processes.
  static func unit(ofGroup path: String) -> String? {
    path.split(separator: "/").last { name in
      [".service", ".scope", ".socket", ".mount", ".swap"].contains { name.hasSuffix($0) }
    }.map(String.init)
  }
}

/// The names of users that rules need numbers for.
extension RuleMatching {
  static func namedUsers(in rules: [AdoptionRule]) -> Set<ProcessPattern.User> {
    Set(rules.flatMap { $0.matches + $0.exceptions }.compactMap(\.user))
  }
}

/// A program that waits for a person at a terminal, or that a shell watches. If such a program is stopped, its shell
/// reports `Stopped` and takes the terminal back, and the program doesn't get it again when it is continued.
struct TerminalUse: Sendable {
  var pid: Int32
  /// Numbers of its controlling terminal, session, and process group; and those of its parent.
  var terminal: Int32
  var session: Int32
  var group: Int32
  var parentSession: Int32
  var parentGroup: Int32
  /// Its standard input is a terminal.
  var readsTerminal: Bool

  /// Why it had better not be stopped; nil: nothing notices.
  var refusal: String? {
    // Without a controlling terminal no shell does job control for it.
    guard terminal != 0 else { return nil }
    if pid == session { return "it leads the session of a terminal" }
    // A shell with job control puts each job into a group of its own. An editor's language server stays in the
    // editor's group.
    if parentSession == session, parentGroup != group {
      return "it is a job of a shell on a terminal"
    }
    return readsTerminal ? "it reads from a terminal" : nil
  }
}
