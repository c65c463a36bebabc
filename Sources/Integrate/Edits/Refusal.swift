import Control

/// The reason why a command stays as it is. Scripts get the code, people the text.
public enum Refusal: Error, Hashable, Sendable {
  case remote, noCommand, disabled
  /// The command starts the process elsewhere.
  case client(String)
  /// The command starts the process as another user.
  case otherUser(String)
  case missing(CommandLookupError)
  case tilde
  case notText(String)
  /// The text can't be moved as it is written.
  case needsQuotes(String)
  case pathOnly
  case defaultArguments(String)
  case jupytersPython(String)
  case otherProvisioner(String)
  case unclear, wrappedOtherwise
  /// The `dormouse` that the file names doesn't exist.
  case lostWrapper(String)
  /// The command was wrapped before `dormouse integrate`. `--undo` removes only what `integrate`
  /// has inserted.
  case wrappedBefore

  public var code: String {
    switch self {
    case .remote: "remote"
    case .noCommand: "no_command"
    case .disabled: "disabled"
    case .client: "client_of_another_process"
    case .otherUser: "other_user"
    case .missing: "missing_program"
    case .tilde: "tilde"
    case .notText: "not_text"
    case .needsQuotes: "needs_quotes"
    case .pathOnly: "no_setting_for_arguments"
    case .defaultArguments: "default_arguments"
    case .jupytersPython: "python_of_jupyter"
    case .otherProvisioner: "other_provisioner"
    case .unclear: "unclear"
    case .wrappedOtherwise: "wrapped_otherwise"
    case .lostWrapper: "lost_wrapper"
    case .wrappedBefore: "wrapped_before"
    }
  }

  /// The reason as text, escaped.
  public var text: String {
    switch self {
    case .remote: "a remote server has no process here"
    case .noCommand: "it has no command in this file"
    case .disabled: "it is disabled in the configuration"
    case .client(let program):
      "`\(escaped(program))` only starts the server elsewhere: the server itself would stay awake"
    case .otherUser(let program): "`\(escaped(program))` starts it as another user"
    case .missing(let error): "\(error)"
    case .tilde: "write its full path instead of `~` first: only the host knows `~`"
    case .notText(let what): "\(escaped(what)) isn't made of texts"
    case .needsQuotes(let what):
      "write \(escaped(what)) on a line of its own and in quotes first"
    case .pathOnly:
      "the extension has no setting for arguments: write the path of a script (docs/wrap.md)"
    case .defaultArguments(let what):
      "without \(escaped(what)) the host uses arguments of its own: write them in this file first"
    case .jupytersPython(let name):
      "`\(escaped(name))` is Jupyter's own Python: write its full path first "
        + "(`python -m ipykernel install --user` does)"
    case .otherProvisioner(let name): "the provisioner `\(escaped(name))` starts it"
    case .unclear: "its `dormouse wrap` has no `--`: change it by hand"
    case .wrappedOtherwise: "it is wrapped with other options: use --undo first"
    case .lostWrapper(let path):
      "`\(escaped(path))` doesn't exist: use --undo, and then integrate it again"
    case .wrappedBefore: "it was wrapped before `dormouse integrate`: change it by hand"
    }
  }
}

extension Refusal {
  /// Programs that only forward input and output to a process which has another parent.
  private static let clients: Set<String> = [
    "docker", "docker-compose", "podman", "nerdctl", "kubectl", "lxc", "incus", "ssh",
    "flatpak-spawn", "distrobox", "distrobox-enter", "toolbox", "machinectl",
  ]
  private static let switchers: Set<String> = ["sudo", "doas", "su", "pkexec", "run0"]

  /// Returns the reason why the process of a command can't be put to sleep; nil if it can.
  static func of(_ command: [String]) -> Refusal? {
    guard let program = command.first else { return .noCommand }
    let name = baseName(program)
    if clients.contains(name) { return .client(name) }
    if switchers.contains(name) { return .otherUser(name) }
    return program.hasPrefix("~") ? .tilde : nil
  }
}
