import Control
import Linux

/// The edits of one server's command, and the result with its reason.
struct ServerEdits {
  let edits: [TextEdit]
  let outcome: ServerOutcome

  /// - Parameter change: The change to make; nil if the server is only listed.
  init(
    location: CommandLocation, document: ConfigDocument, backup: ConfigDocument?,
    change: Integration.Change?, integration: Integration
  ) {
    var outcome = ServerOutcome(name: location.name, project: location.project)
    var edits: [TextEdit] = []
    do throws(Refusal) {
      let command = try location.command(in: document.root)
      outcome.command = command
      // If there is no copy of the earlier file, `integrate` counts as the one that wrapped each
      // command.
      let before = backup.flatMap { try? location.command(in: $0.root) }
      let wasWrapped = before.map { WrapPrefix.find(in: $0) != .nothing } ?? false
      switch (WrapPrefix.find(in: command), change) {
      case (.arguments(let count), .unwrap) where !wasWrapped:
        edits = try UnwrapEdits(document: document).edits(
          location, keepsEmptyList: Self.hadArguments(location, backup))
        outcome.state = .unwrapped
        outcome.command = Array(command.dropFirst(count))
      case (.arguments(let count), _):
        outcome.state = .wrapped
        outcome.isOurs = !wasWrapped
        outcome.command = Array(command.dropFirst(count))
        if change == .unwrap { throw .wrappedBefore }
        try Self.check(Array(command.prefix(count)), for: change, integration)
      case (.unclear, _):
        outcome.state = .wrapped
        if change == .unwrap { throw .unclear }
      case (.nothing, let change):
        outcome.state = .notWrapped
        if change == .unwrap { break }
        if let refusal = location.refusal ?? Refusal.of(command) { throw refusal }
        try Self.checkProgram(command[0], of: location, in: document, integration.context)
        guard change == .wrap else { break }
        edits = try WrapEdits(
          document: document,
          wrapPrefix: integration.wrapPrefix.named(location.name, command: command)
        ).edits(location)
        outcome.state = .newlyWrapped
        outcome.isOurs = true
      }
    } catch {
      // If the server can't be wrapped for another reason, that reason is better than a missing
      // command. A server without a command needs no reason to be unwrapped.
      let isConcerned = change != .unwrap || outcome.state == .wrapped
      outcome.refusal = isConcerned ? error == .noCommand ? location.refusal ?? error : error : nil
    }
    self.edits = edits
    self.outcome = outcome
  }

  private static func hadArguments(_ location: CommandLocation, _ backup: ConfigDocument?) -> Bool {
    guard case .split(let table, _, let arguments) = location.shape else { return true }
    return backup?.root[table]?[arguments] != nil
  }

  /// Checks the arguments of a command that is wrapped already.
  private static func check(
    _ arguments: [String], for change: Integration.Change?, _ integration: Integration
  ) throws(Refusal) {
    if let program = arguments.first, program.hasPrefix("/"), isAbsent(program) {
      throw .lostWrapper(program)
    }
    let options = Array(arguments.dropFirst(2).dropLast())
    if change == .wrap, integration.hasGivenOptions, !integration.wrapPrefix.matches(options) {
      throw .wrappedOtherwise
    }
  }

  /// Checks that the program exists, by the search that the host would do. A path with variables, a
  /// relative one, and one from another PATH can't be checked.
  private static func checkProgram(
    _ program: String, of location: CommandLocation, in document: ConfigDocument,
    _ context: HostContext
  ) throws(Refusal) {
    if program.contains("$") || program.contains("{") { return }
    if program.contains("/"), !program.hasPrefix("/") { return }
    if case .split(let table, _, _) = location.shape,
      document.root[table]?["env"]?["PATH"] != nil
    {
      return
    }
    do throws(CommandLookupError) {
      _ = try locateCommand(
        program, searchPath: context.environment["PATH"], directory: context.directory)
    } catch { throw .missing(error) }
  }
}
