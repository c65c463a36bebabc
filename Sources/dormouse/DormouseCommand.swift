import ArgumentParser
import Control
import Glibc

@main
struct DormouseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dormouse",
    abstract: "Puts idle processes to sleep on disk and wakes them on the next request.",
    discussion: """
      First steps: `dormouse doctor`, `dormouse run sleeper -- sleep 1000` (starts the daemon, \
      too), `dormouse ps`, `dormouse hibernate sleeper`, `dormouse wake sleeper`.

      Exit codes:

      """ + exitCodeTable(),
    version: Dormouse.version,
    subcommands: [PagerCommand.self, UserfaultServiceCommand.self],
    groupedSubcommands: [
      CommandGroup(
        name: "Project",
        subcommands: [
          InitCommand.self, UpCommand.self, DownCommand.self, AttachCommand.self,
          ListCommand.self,
        ]),
      CommandGroup(
        name: "Daemon",
        subcommands: [
          DaemonCommand.self, ReloadCommand.self, ShutdownCommand.self, RecoverCommand.self,
          DoctorCommand.self,
        ]),
      CommandGroup(
        name: "Worker",
        subcommands: [
          RunCommand.self, RemoveCommand.self, WrapCommand.self, IntegrateCommand.self,
          StartCommand.self, StopCommand.self, RestartCommand.self,
          ForegroundCommand.self, BackgroundCommand.self, SuspendCommand.self,
          HibernateCommand.self, WakeCommand.self,
          WarnCommand.self, TrimCommand.self, FillCommand.self, TerminateCommand.self,
          ProtectCommand.self, ShadowCommand.self, EnforceCommand.self,
          AdoptCommand.self, ReleaseCommand.self,
        ]),
      CommandGroup(
        name: "Inspection",
        subcommands: [
          ProcessesCommand.self, TopCommand.self, StatusCommand.self, ExplainCommand.self,
          LogsCommand.self, EventsCommand.self, JetsamCommand.self, ReportCommand.self,
          MetricsCommand.self,
          DashboardCommand.self,
        ]),
      CommandGroup(
        name: "Policy",
        subcommands: [
          PolicyCommand.self, PressureCommand.self, ReplayCommand.self, ImportCommand.self,
        ]),
      CommandGroup(
        name: "Measurement",
        subcommands: [FootprintCommand.self, BenchCommand.self, SimulateCommand.self]),
      CommandGroup(name: "Shell", subcommands: [CompletionsCommand.self]),
    ])

  /// Runs the verb. Every verb throws its error, which is printed here as a sentence. The process
  /// exits with the error's code.
  static func main() {
    occupyStandardDescriptors()
    // Scripts call `--version` often, and the parser would take a third of its time.
    if CommandLine.arguments.dropFirst().elementsEqual(["--version"]) {
      return print(Dormouse.version)
    }
    do {
      if RootHelp.isWanted(by: CommandLine.arguments.dropFirst()) {
        return try Output.write(RootHelp.text(width: Terminal.width ?? 100))
      }
      if let unknown = UnknownVerb.find(
        in: Array(CommandLine.arguments.dropFirst()), of: DormouseCommand.self)
      {
        throw unknown.failure
      }
      var command = try parseAsRoot(
        RunCommand.completed(Array(CommandLine.arguments.dropFirst())))
      try command.run()
    } catch let failure as CommandFailure {
      end(failure.exit, failure.text)
    } catch let error as ControlError {
      end(error.exit, error.description)
    } catch let error as FileError {
      end(.notDone, error.description)
    } catch {
      if let width = Terminal.widthOfErrors, let text = UsageError.text(for: error, width: width) {
        Output.standardError(text)
        Glibc.exit(CommandExit.usage.rawValue)
      }
      guard let help = VerbHelp(for: error) else { exit(withError: error) }
      // If standard output is closed, there is nothing else to do.
      try? Output.write(help.text(width: Terminal.width ?? 100))
      Glibc.exit(EXIT_SUCCESS)
    }
  }

  /// Opens the standard descriptors that are closed at the start (`>&-`). Otherwise the next file
  /// or socket, such as an image or a record, would get number 0, 1 or 2, and all printed or logged
  /// text with it. These descriptors can't be written to.
  private static func occupyStandardDescriptors() {
    while true {
      let descriptor = open("/dev/null", O_RDONLY)
      if descriptor > STDERR_FILENO { close(descriptor) }
      guard (0...STDERR_FILENO).contains(descriptor) else { return }
    }
  }

  private static func end(_ code: CommandExit, _ text: String) -> Never {
    Output.complain(text)
    Glibc.exit(code.rawValue)
  }

  private static func exitCodeTable() -> String {
    CommandExit.allCases.map { code in
      "\(padded("\(code.rawValue)", to: 4, alignsRight: true))  \(code.meaning)"
    }.joined(separator: "\n")
  }
}

/// The failure of a verb.
struct CommandFailure: Error {
  var exit: CommandExit
  /// One sentence, escaped, without a full stop.
  var text: String

  init(_ exit: CommandExit, _ text: String) { (self.exit, self.text) = (exit, text) }
}
