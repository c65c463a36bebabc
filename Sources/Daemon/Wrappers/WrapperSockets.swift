import Control
import Glibc
import Linux
import Policy

/// The functions of the daemon that `RegisteredWrappers` uses. Tests provide their own.
protocol WrapperHost {
  /// Sends a request to a wrapper's socket. `respond` is called once, within `timeout`.
  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void)
  /// The pid of the process that made this connection, as the kernel reports it.
  func process(of client: ClientID) -> Int32?
  /// Sends SIGKILL to a process, if it started before `moment`.
  func kill(_ pid: Int32, startedBefore moment: Instant) -> WrapperKill
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// The outcome of an attempt to kill a wrapper.
enum WrapperKill: Hashable {
  case done
  /// No process has the pid, or another process has it.
  case hasEnded
  case failed(String)
}

/// Reaches registered wrappers by their sockets, and by signals.
struct WrapperSockets: WrapperHost {
  let services: Services
  let control: ControlServer

  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    Relay(
      request, to: socket, jobs: services.jobs, loop: services.loop, timeout: timeout,
      then: respond)
  }

  func process(of client: ClientID) -> Int32? { control.process(of: client) }

  func kill(_ pid: Int32, startedBefore moment: Instant) -> WrapperKill {
    // A process that can't be read has ended.
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
