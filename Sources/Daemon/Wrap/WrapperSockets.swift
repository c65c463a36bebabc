import Control
import Glibc
import Linux
import Policy

/// How the daemon reaches registered wrappers: by their sockets, and by signal.
final class WrapperSockets: WrapperHost {
  private let services: Services
  /// nil: clients can't connect yet.
  private let server: () -> ControlServer?

  init(_ services: Services, server: @escaping () -> ControlServer?) {
    self.services = services
    self.server = server
  }

  func ask(
    _ request: ControlRequest, at socket: String, patience: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    Relay(
      request, to: socket, jobs: services.jobs, loop: services.loop, patience: patience,
      then: respond)
  }

  func process(of client: ClientID) -> Int32? { server()?.process(of: client) }

  func kill(_ pid: Int32, startedBefore moment: Instant) -> WrapperKill {
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
