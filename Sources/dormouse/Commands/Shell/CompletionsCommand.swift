import ArgumentParser
import Control
import Linux
import PolicyFile

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print a shell's completions of verbs, options and workers' names.",
    discussion: """
      `make install` and the package install them for all three shells. For zsh, the file is \
      `_dormouse` in a directory of $fpath.

      Examples:
        source <(dormouse completions bash)
        dormouse completions fish > ~/.config/fish/completions/dormouse.fish
      """)

  @Argument(help: "The shell.") var shell: Shell

  func run() throws {
    try Output.line(DormouseCommand.completionScript(for: shell.kind))
  }

  enum Shell: String, ExpressibleByArgument, CaseIterable {
    case bash, zsh, fish

    var kind: CompletionShell {
      switch self {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    }
  }
}

extension CompletionKind {
  /// Completes the names of the daemon's workers, without those that are already on the line. After
  /// an `@` these are the names of groups. Completion must be fast: if there is no daemon, or it is
  /// busy, there are no names.
  static var workers: CompletionKind {
    .custom { arguments, cursor, _ in
      let others = arguments.enumerated().filter { $0.offset != cursor }.map(\.element)
      let isGroup = arguments.indices.contains(cursor) && arguments[cursor].hasPrefix("@")
      let workers = workers(of: connection(among: arguments))
      return (isGroup ? WorkerPatterns.groups(of: workers) : workers.map(\.name))
        .filter { !others.contains($0) }
    }
  }

  /// Completes the names of policies, and the files and directories that begin with the typed text.
  static var policies: CompletionKind {
    .custom { arguments, cursor, _ in
      let typed = arguments.indices.contains(cursor) ? arguments[cursor] : ""
      let library = PolicyLibrary(directories: DefaultPaths.ofThisProcess().policyDirectories)
      return library.names + paths(startingWith: typed)
    }
  }

  private static func workers(of connection: ConnectionOptions?) -> [WorkerReport] {
    guard let connection else { return [] }
    do {
      var client = try ControlClient(
        connectingTo: connection.target().path, isNamed: connection.isNamed)
      return try client.perform(.ps, timeout: .milliseconds(500)).workers ?? []
    } catch {
      return []
    }
  }

  /// Reads `--socket PATH` or `--project=NAME` from the line.
  private static func connection(among arguments: [String]) -> ConnectionOptions? {
    var options: [String] = []
    for (index, word) in arguments.enumerated() {
      for name in ["--socket", "--project"] {
        if word == name, index + 1 < arguments.count { options = [name, arguments[index + 1]] }
        if word.hasPrefix(name + "=") { options = [word] }
      }
    }
    // With both options there is nothing to complete.
    return try? ConnectionOptions.parse(options)
  }

  /// Returns files and directories for an argument that may also be a name. Directories end in a
  /// slash.
  private static func paths(startingWith typed: String) -> [String] {
    let cut = typed.lastIndex(of: "/").map { typed.index(after: $0) } ?? typed.startIndex
    let (lead, stem) = (String(typed[..<cut]), typed[cut...])
    // A directory that can't be read has no entries to complete.
    let names = (try? listDirectory(lead.isEmpty ? "." : lead)) ?? []
    var paths: [String] = []
    for name in names {
      guard name.hasPrefix(stem), stem.hasPrefix(".") || !name.hasPrefix(".") else { continue }
      let isDirectory = fileStatus(of: lead + name)?.isDirectory == true
      paths.append(lead + name + (isDirectory ? "/" : ""))
    }
    return paths.sorted()
  }
}
