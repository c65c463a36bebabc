/// The exit codes of the command line; docs/exit-codes.md explains them. Codes from 64 on have the
/// meaning of sysexits.h.
public enum CommandExit: Int32, Hashable, Sendable, CaseIterable {
  case done = 0
  /// The reason is one sentence on standard error.
  case notDone = 1
  case unknownWorker = 3
  case noDaemon = 4
  case daemonEnded = 5
  /// ArgumentParser exits with this code by itself.
  case usage = 64
  case badConfiguration = 65
  case missingMechanism = 69
  case internalError = 70
  case cannotCreate = 73
  /// The command can't be started. Only `wrap` and `footprint record` use this code and the next,
  /// as env(1) and the shells do.
  case cannotRun = 126
  case noCommand = 127

  public var meaning: String {
    switch self {
    case .done: "done"
    case .notDone: "not done; standard error says why"
    case .unknownWorker: "no worker of that name"
    case .noDaemon: "no daemon answers at the socket"
    case .daemonEnded: "the daemon ended before it answered"
    case .usage: "wrong arguments"
    case .badConfiguration: "a configuration or policy file is wrong"
    case .missingMechanism: "the kernel lacks a mechanism that is needed"
    case .internalError: "a bug in Dormouse"
    case .cannotRun: "`wrap`, `footprint record`: the command can't be started"
    case .noCommand: "`wrap`, `footprint record`: there is no such command"
    case .cannotCreate: "the socket or state can't be created, or another daemon runs"
    }
  }
}

extension ControlResponse.Result {
  public var exit: CommandExit {
    switch self {
    case .done, .event: .done
    case .refused, .failed, .badRequest: .notDone
    case .unknownWorker: .unknownWorker
    }
  }
}

extension ControlError {
  public var exit: CommandExit {
    switch self {
    case .noDaemon, .noDaemonOfProject: .noDaemon
    case .closedEarly: .daemonEnded
    case .refusedByPermissions, .foreignDaemon, .pathTooLong, .malformed, .rejected,
      .unexpectedResponse, .timedOut, .unsendable, .system:
      .notDone
    }
  }
}
