import Control
import Glibc
import Lifecycle
import Linux
import Policy

/// The functions of the daemon that `RegisteredWrappers` uses. Tests provide their own.
protocol WrapperHost: AnyObject {
  /// One request to a wrapper's own socket; answered once, within `patience`.
  func ask(
    _ request: ControlRequest, at socket: String, patience: Duration,
    then respond: @escaping (ControlResponse) -> Void)
  /// The process that made this connection, as the kernel reports it.
  func process(of client: ClientID) -> Int32?
  /// SIGKILL, if the process of that number started before `moment`.
  func kill(_ pid: Int32, startedBefore moment: Instant) -> WrapperKill
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// What became of an attempt to kill a wrapper.
enum WrapperKill: Hashable {
  case done
  /// The number is free, or another process has it.
  case hasEnded
  case failed(String)
}

/// How the daemon reaches registered wrappers: by their sockets, and by signal.
final class WrapperSockets: WrapperHost {
  private let services: Services
  private let control: ControlSocket

  init(_ services: Services, _ control: ControlSocket) {
    self.services = services
    self.control = control
  }

  func ask(
    _ request: ControlRequest, at socket: String, patience: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    Relay(
      request, to: socket, jobs: services.jobs, loop: services.loop, patience: patience,
      then: respond)
  }

  func process(of client: ClientID) -> Int32? { control.process(of: client) }

  func kill(_ pid: Int32, startedBefore moment: Instant) -> WrapperKill {
    // It has ended.
    guard let process = try? ProcessStat.read(pid), process.started <= moment.nanoseconds else {
      return .hasEnded
    }
    do throws(SystemCallError) { try process.identity.signal(SIGKILL) } catch {
      return .failed("\(error)")
    }
    return .done
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { services.log(priority, text) }
}
