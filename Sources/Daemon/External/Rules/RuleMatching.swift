import Linux
import Policy

extension RuleScan.Matched {
  /// The order of conditions. If several patterns match, the one with the lowest rank counts.
  fileprivate var rank: Int {
    switch self {
    case .ready: 0
    case .tooYoung: 1
    default: 2
    }
  }
}

/// Decides which rule a process belongs to. A property of the process is read only if a rule names
/// it.
struct RuleMatching: Sendable {
  var rules: [AdoptionRule]
  /// The numbers of the users that the rules name. A name without a number matches no process.
  var users: [ProcessPattern.User: UInt32] = [:]

  /// The matching with the numbers of the users that the rules name. A look-up may wait for a name
  /// service.
  func resolved() -> RuleMatching {
    var result = self
    for user in Set(rules.flatMap { $0.matches + $0.exceptions }.compactMap(\.user)) {
      switch user {
      case .me: result.users[user] = CurrentProcess.user
      case .number: break
      // A user that the machine doesn't know has no processes.
      case .name(let name):
        result.users[user] = (try? Account(user: name, group: nil))?.identity.user
      }
    }
    return result
  }

  /// Finds the rule for a process: `unmatched`, or `matched` as `ready`, `tooYoung` or `tooSmall`.
  /// The first rule whose pattern fits, apart from age and footprint, decides, and no later rule is
  /// checked.
  ///
  /// - Parameter isAdopted: whether the process is a worker of a rule already. While it sleeps it
  ///   has another footprint, so age and footprint aren't checked.
  func choose(_ process: ProcessObservation, isAdopted: Bool = false) -> RuleScan.Standing {
    for (index, rule) in rules.enumerated() {
      let conditions = rule.matches.compactMap { condition($0, of: process, isAdopted) }
      guard let best = conditions.min(by: { $0.rank < $1.rank }),
        !rule.exceptions.contains(where: { excludes($0, from: process, isAdopted) })
      else { continue }
      return .matched(index, best)
    }
    return .unmatched
  }

  private func excludes(
    _ pattern: ProcessPattern, from process: ProcessObservation, _ isAdopted: Bool
  ) -> Bool {
    if isAdopted, pattern.olderThan != nil || pattern.minFootprint != nil { return false }
    return condition(pattern, of: process, isAdopted) == .ready
  }

  /// Checks a pattern, the properties that are cheapest to read first; nil if it doesn't match.
  private func condition(
    _ pattern: ProcessPattern, of process: ProcessObservation, _ isAdopted: Bool
  ) -> RuleScan.Matched? {
    guard Self.fits(pattern.name, process.name), fits(pattern.user, process),
      pattern.command.isEmpty || Self.fits(pattern.command, process.command),
      pattern.executable.isEmpty || Self.fits(pattern.executable, process.executable),
      fitsGroup(pattern, process)
    else { return nil }
    if isAdopted { return .ready }
    if let minimum = pattern.olderThan, process.age < minimum {
      return .tooYoung(minimum - process.age)
    }
    if let minimum = pattern.minFootprint {
      let footprint = process.footprint
      if footprint.map({ $0 < minimum }) ?? true { return .tooSmall(footprint, minimum: minimum) }
    }
    return .ready
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

  /// The unit of a cgroup: `/user.slice/user@1000.service/app.slice/jupyter.service/worker` →
  /// `jupyter.service`. A slice has units and no processes.
  static func unit(ofGroup path: String) -> String? {
    path.split(separator: "/").last { name in
      [".service", ".scope", ".socket", ".mount", ".swap"].contains { name.hasSuffix($0) }
    }.map(String.init)
  }
}

extension ProcessStat {
  /// Why a program on a terminal should not be stopped; nil if nothing notices. A program may wait
  /// for input at a terminal, or a shell may watch it. If such a program is stopped, its shell
  /// reports `Stopped` and takes the terminal back, and the program doesn't get it again when it is
  /// continued.
  ///
  /// - Parameter readsTerminal: whether its standard input is a terminal.
  func terminalRefusal(
    parent: ProcessStat?, readsTerminal: @autoclosure () -> Bool
  ) -> String? {
    // Without a controlling terminal no shell does job control for it.
    guard terminal != 0 else { return nil }
    if pid == session { return "it leads the session of a terminal" }
    // A shell with job control puts each job into a process group. An editor's language server
    // stays in the editor's group.
    if let parent, parent.session == session, parent.processGroup != processGroup {
      return "it is a job of a shell on a terminal"
    }
    return readsTerminal() ? "it reads from a terminal" : nil
  }
}

/// A process as rules see it. Each property is read when a rule needs it, and once. It mustn't be
/// used on the event loop's thread.
final class ProcessObservation {
  let stat: ProcessStat
  private let now: Instant
  /// The command line, if it was given; nil if it has to be read.
  private let givenCommand: [String]?

  /// - Parameter command: the command line of a process whose memory may be on disk, so that it
  ///   can't be read.
  init(_ stat: ProcessStat, now: Instant, command: [String]? = nil) {
    self.stat = stat
    self.now = now
    givenCommand = command
  }

  var name: String { stat.name }
  var age: Duration { max(.zero, now - Instant(nanoseconds: stat.started)) }
  // These properties are nil if they may not be read.
  lazy var arguments: [String]? = givenCommand ?? ProcessDetails.command(of: stat.pid)
  lazy var command: String? = arguments.map { $0.joined(separator: " ") }
  lazy var executable: String? = ProcessDetails.executable(of: stat.pid)
  // A process that can't be read has ended.
  lazy var user: UInt32? = (try? ProcessStatus.read(stat.pid))?.user
  lazy var cgroup: String? = ProcessDetails.cgroup(of: stat.pid)
  lazy var footprint: ByteCount? = ByteCount(Int64(clamping: anonymousMemory(of: stat.pid)))
}
