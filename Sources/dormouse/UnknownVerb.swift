import ArgumentParser
import Control
import PolicyFile

/// A verb that doesn't exist. ArgumentParser would report it as an unexpected argument. This
/// suggests the right verb for a mistyped one, or for one that another supervisor has under another
/// name.
struct UnknownVerb {
  /// The command before the verb, such as `dormouse` or `dormouse policy`.
  var command: String
  var verb: String
  var existing: [String]

  /// Finds a verb that doesn't exist. The result is nil if the first argument is a verb or an
  /// option, and so is the second one after a verb with subcommands. `help` may come before either.
  static func find(in arguments: [String], of root: any ParsableCommand.Type) -> UnknownVerb? {
    let isHelp = arguments.first == "help"
    var remaining = isHelp ? arguments.dropFirst() : arguments[...]
    var verbs = root.configuration.subcommands
    var command = "dormouse"
    var hasDefault = false
    while !verbs.isEmpty {
      guard let word = remaining.popFirst(), !word.isEmpty, !word.hasPrefix("-"), word != "help"
      else {
        return nil
      }
      guard let next = verbs.first(where: { $0.configuration.commandName == word }) else {
        var existing = verbs.filter { $0.configuration.shouldDisplay }
          .compactMap { $0.configuration.commandName }
        if command == "dormouse", !isHelp { existing.append("help") }
        // The word is an argument of the default verb, unless it is nearly another verb.
        if hasDefault, nearest(to: word, among: existing) == nil { return nil }
        return UnknownVerb(command: command, verb: word, existing: existing)
      }
      command += " \(word)"
      verbs = next.configuration.subcommands
      hasDefault = next.configuration.defaultSubcommand != nil
    }
    return nil
  }

  var failure: CommandFailure {
    let isTop = command == "dormouse"
    let meant = (isTop ? Self.elsewhere[verb] : nil) ?? nearest(to: verb, among: existing)
    let hint = meant.map { "did you mean `\(command) \($0)`?" } ?? ""
    let gap = hint.isEmpty ? "" : "\(hint) "
    let scope = isTop ? "" : " of `\(command)`"
    return CommandFailure(
      .usage,
      "there is no verb `\(escaped(verb))`\(scope); \(gap)`\(command) --help` lists them all")
  }

  /// The names that supervisord, systemd, process-compose, Docker and the shell use.
  private static let elsewhere = [
    "list": "ps", "watch": "top", "htop": "top", "show": "status", "info": "status",
    "log": "logs", "tail": "logs", "kill": "terminate", "down": "shutdown", "exit": "shutdown",
    "up": "daemon", "serve": "daemon", "pause": "suspend", "freeze": "suspend", "fg": "foreground",
    "bg": "background", "resume": "wake", "unpause": "wake", "thaw": "wake", "add": "run",
    "exec": "run", "check": "policy check", "validate": "policy check", "update": "reload",
    "reread": "reload", "daemon-reload": "reload", "version": "--version",
    "config": "policy show", "validate-config": "policy check",
    "remove": "rm", "delete": "rm",
  ]
}

/// The end of a message about an unknown word: the nearest of the known ones, or nothing.
func hint(for word: String, among names: [String]) -> String {
  nearest(to: word, among: names).map { "; did you mean `\(escaped($0))`?" } ?? ""
}
