import Glibc
import Testing

/// Completion in real shells, as Tab requests it.
@Suite("Completions") struct CompletionTests {
  static let two = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers: { sleeper: { command: sleep 640 }, slumber: { command: sleep 641 } }
    """

  @Test("bash completes verbs, options and the names of workers that aren't yet on the line")
  func bash() throws {
    let daemon = try TestDaemon(Self.two)
    #expect(try bash("dormouse hib", daemon) == ["hibernate"])
    #expect(try bash("dormouse stop s", daemon) == ["sleeper", "slumber"])
    #expect(try bash("dormouse stop sleeper s", daemon) == ["slumber"])
    #expect(try bash("dormouse stop --al", daemon) == ["--all"])
    #expect(try bash("dormouse events --worker sl", daemon) == ["sleeper", "slumber"])
    #expect(try bash("dormouse completions ", daemon).contains("fish"))
  }

  @Test func `bash completes file names where an argument is a file`() throws {
    let daemon = try TestDaemon(Self.two, starts: false)
    let directory = daemon.scratch.path
    _ = try daemon.scratch.write("Procfile", "web: sleep 1\n")
    let configuration = "\(directory)/dormouse.yaml"
    for line in [
      "dormouse daemon --config", "dormouse policy check", "dormouse policy show",
      "dormouse policy diff", "dormouse daemon --policy", "dormouse wrap --policy",
      "dormouse replay --policy", "dormouse import", "dormouse events --journal",
    ] {
      #expect(try bash("\(line) \(directory)/dorm", daemon) == [configuration], "\(line)")
    }
    #expect(try bash("dormouse import \(directory)/Pr", daemon) == ["\(directory)/Procfile"])
    #expect(try bash("dormouse policy show ios", daemon) == ["ios-5"])
  }

  @Test func `Without a daemon, completion offers no worker names and prints no error`() throws {
    let daemon = try TestDaemon(Self.two, starts: false)
    #expect(try bash("dormouse stop s", daemon).isEmpty)
    #expect(try bash("dormouse sta", daemon) == ["start", "status"])
  }

  @Test(
    "fish offers the names of workers on a terminal",
    .enabled(if: TestMachine.has("fish"), "fish isn't installed"))
  func fish() throws { try tab("fish", "dormouse completions fish | source") }

  @Test(.enabled(if: TestMachine.has("zsh"), "zsh isn't installed"))
  func `zsh offers the names of workers on a terminal`() throws {
    try tab(
      "zsh",
      "autoload -Uz compinit && compinit -u -d $TMPDIR/dump && source <(dormouse completions zsh)")
  }

  private func tab(_ shell: String, _ setup: String) throws {
    let daemon = try TestDaemon(Self.two)
    let fixture = TestMachine.fixture("tab.py")
    _ = try run(
      [TestMachine.python, fixture, shell, setup, "dormouse wake s", "sleeper", "slumber"], daemon)
  }

  /// The completions that bash offers for a line, sorted.
  private func bash(_ line: String, _ daemon: TestDaemon) throws -> [String] {
    let script = """
      [ -e "$TMPDIR/completions" ] || dormouse completions bash > "$TMPDIR/completions"
      source "$TMPDIR/completions"
      line=$1
      COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9 COMP_KEY=9
      read -ra COMP_WORDS <<< "$line"
      [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
      function=$(complete -p dormouse | sed 's/.*-F \\([^ ]*\\).*/\\1/')
      "$function" dormouse "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    return try run(["bash", "--norc", "-c", script, "bash", line], daemon)
  }

  /// The lines of the program's output, sorted. It must print no error.
  private func run(_ arguments: [String], _ daemon: TestDaemon) throws -> [String] {
    let directory = TestMachine.executable.split(separator: "/").dropLast()
      .joined(separator: "/")
    var command = Command(arguments: arguments)
    command.environment["PATH"] = "/\(directory):\(command.environment["PATH"] ?? "")"
    command.environment["DORMOUSE_CONTROL_SOCKET"] = daemon.socket
    command.environment["TMPDIR"] = daemon.scratch.path
    command.environment["HOME"] = daemon.scratch.path
    let outcome = try command.run(in: daemon.scratch)
    #expect(outcome.code == 0 && outcome.error.isEmpty, "\(outcome)")
    return outcome.output.split(separator: "\n").map(String.init).sorted()
  }
}
