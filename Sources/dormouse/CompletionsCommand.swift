import ArgumentParser
import Control

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print what makes a shell complete verbs, options and the names of workers.",
    discussion: """
      For bash, in ~/.bashrc: `source <(dormouse completions bash)`. For zsh, as a file `_dormouse` \
      in a directory of $fpath. For fish: `dormouse completions fish > \
      ~/.config/fish/completions/dormouse.fish`. `make install` puts all three where the shells look.
      """)

  @Argument(help: "Which shell: bash, zsh or fish.") var shell: Shell

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
  /// The names of the daemon's workers, those that stand on the line already left out. Somebody is
  /// waiting with a finger on the key: without a daemon, or with one that is busy, there are none.
  static var workers: CompletionKind {
    .custom { words, cursor, _ in
      let others = words.enumerated().filter { $0.offset != cursor }.map(\.element)
      return workerNames(socket: socketOption(among: words)).filter { !others.contains($0) }
    }
  }

  private static func workerNames(socket: String?) -> [String] {
    let path = DefaultPaths.ofThisProcess().socket(option: socket)
    do {
      var client = try ControlClient(connectingTo: path, isNamed: socket != nil)
      return try (client.perform(.ps, timeout: .milliseconds(500)).workers ?? []).map(\.name)
    } catch {
      return []
    }
  }

  /// `--socket PATH` or `--socket=PATH`, as far as it has been typed.
  private static func socketOption(among words: [String]) -> String? {
    if let index = words.firstIndex(of: "--socket"), index + 1 < words.count {
      return words[index + 1]
    }
    let lead = "--socket="
    return words.first { $0.hasPrefix(lead) }.map { String($0.dropFirst(lead.count)) }
  }
}
