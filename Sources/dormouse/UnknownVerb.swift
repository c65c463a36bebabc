import ArgumentParser
import Control
import PolicyFile

/// ArgumentParser calls a verb that it doesn't know an unexpected argument; a person who mistyped
/// one, or knows it by the name that another supervisor gives it, wants to hear the right one.
struct UnknownVerb {
  var verb: String
  var known: [String]

  /// nil: the first word is a verb, or an option. Behind `help` it is the second.
  init?(arguments: [String], known: [String]) {
    let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
    guard let first = words.first, !first.isEmpty, !first.hasPrefix("-"), first != "help",
      !known.contains(first)
    else { return nil }
    verb = first
    self.known = known + ["help"]
  }

  var failure: CommandFailure {
    let meant = Self.elsewhere[verb] ?? nearest(to: verb, among: known)
    let hint = meant.map { "did you mean `dormouse \($0)`? " } ?? ""
    return CommandFailure(
      exit: .usage,
      text: "there is no verb `\(escaped(verb))`; \(hint)`dormouse --help` lists them all")
  }

  /// What supervisord, systemd, process-compose, Docker and the shell call it.
  private static let elsewhere = [
    "list": "ps", "ls": "ps", "watch": "top", "htop": "top", "show": "status", "info": "status",
    "log": "logs", "tail": "logs", "kill": "terminate", "down": "shutdown", "exit": "shutdown",
    "up": "daemon", "serve": "daemon", "pause": "suspend", "freeze": "suspend", "fg": "foreground",
    "bg": "background", "resume": "wake", "unpause": "wake", "thaw": "wake", "add": "run",
    "exec": "run", "check": "policy check", "validate": "policy check", "update": "reload",
    "reread": "reload", "daemon-reload": "reload", "version": "--version", "init": "import",
    "config": "policy show", "validate-config": "policy check",
  ]
}
