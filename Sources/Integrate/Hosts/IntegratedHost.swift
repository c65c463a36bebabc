/// A host: a program that starts servers from its configuration.
public enum IntegratedHost: String, CaseIterable, Hashable, Sendable {
  case claudeCode = "claude-code"
  case claudeDesktop = "claude-desktop"
  case codex, cursor, vscode, windsurf, cline
  case continueDev = "continue"
  case geminiCLI = "gemini-cli"
  case opencode, goose
  case lmStudio = "lm-studio"
  case zed, helix, jupyter, neovim, emacs

  public var title: String {
    switch self {
    case .claudeCode: "Claude Code"
    case .claudeDesktop: "Claude Desktop"
    case .codex: "Codex"
    case .cursor: "Cursor"
    case .vscode: "VS Code"
    case .windsurf: "Windsurf"
    case .cline: "Cline"
    case .continueDev: "Continue"
    case .geminiCLI: "Gemini CLI"
    case .opencode: "OpenCode"
    case .goose: "Goose"
    case .lmStudio: "LM Studio"
    case .zed: "Zed"
    case .helix: "Helix"
    case .jupyter: "Jupyter"
    case .neovim: "Neovim"
    case .emacs: "Emacs"
    }
  }

  /// The options of `dormouse wrap` for this host's servers.
  ///
  /// A Jupyter cell that waits in short steps looks like an idle kernel, and one that waits
  /// (`time.sleep`) has to continue when its time is over. ipykernel's own housekeeping comes every
  /// 10 s. A kernel ends with its Jupyter server in any case.
  var options: [String] {
    self == .jupyter
      ? ["--wake-for-timers", "15s", "--idle-after", "5m"] : ["--end-with-host"]
  }

  /// The lines that the user must write, for a host whose configuration is a program; nil for other
  /// hosts.
  public func snippet(_ wrapPrefix: WrapPrefix) -> String? {
    let command = wrapPrefix.suiting(self).all + ["clangd"]
    switch self {
    case .neovim:
      return """
        -- ~/.config/nvim/init.lua, Neovim 0.11 and newer; the same for each server
        vim.lsp.config('clangd', {
          cmd = { \(command.map(Self.quoted).joined(separator: ", ")) },
        })
        vim.lsp.enable('clangd')

        """
    case .emacs:
      return """
        ;; ~/.emacs.d/init.el, eglot; the same for each server
        (with-eval-after-load 'eglot
          (add-to-list 'eglot-server-programs
                       '((c-mode c++-mode)
                         . (\(command.map(Self.quoted).joined(separator: " "))))))

        """
    default: return nil
    }
  }

  /// The text as a literal of Lua and of Emacs Lisp.
  private static func quoted(_ text: String) -> String {
    String(decoding: ConfigDocument.literal(text), as: UTF8.self)
  }
}

/// The environment that decides where the hosts' files are.
public struct HostContext: Sendable {
  public var environment: [String: String]
  public var home: String
  public var directory: String

  public init(environment: [String: String], home: String, directory: String) {
    self.environment = environment
    self.home = home
    self.directory = directory
  }

  /// The directory that a variable names. An empty or relative path is ignored.
  func variable(_ name: String) -> String? {
    environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
  }

  var configuration: String { variable("XDG_CONFIG_HOME") ?? "\(home)/.config" }
}

/// One configuration file of a host.
struct HostFile: Sendable {
  var host: IntegratedHost
  var path: String
  var format = ConfigDocument.Format.json
  /// True if the file belongs to a project, and so may be shared with other people.
  var isOfProject = false
  /// Finds the commands in the file.
  var find: @Sendable (ConfigValue) -> [CommandLocation]
}
