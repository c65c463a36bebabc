import CLinux
import Glibc

/// The client of the package's service for userfaultfd (`dormouse userfault-service`), a small
/// process of root's. It does two things for ordinary users that the kernel permits to root only:
/// it opens /dev/userfaultfd, and it negotiates the events for forks.
///
/// Each call waits for the service, at most for `timeout`, so it isn't for the event loop.
public enum UserfaultService {
  /// The service's socket. DORMOUSE_USERFAULT_SOCKET names another one, for tests.
  public static let path =
    getenv("DORMOUSE_USERFAULT_SOCKET").map { String(cString: $0) } ?? defaultPath
  /// The socket of `dormouse-userfault.socket`. Only root can make files in this directory.
  public static let defaultPath = "/run/dormouse-userfault.sock"

  /// The greatest time that a call waits. The service starts at the first request.
  static var timeout: Duration { .seconds(3) }

  /// The reason why the service hasn't done what was requested.
  public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
    case absent
    case notPermitted
    case noAnswer
    case refused(UserfaultReply.Refusal)
    case failed(SystemCallError)

    public var description: String {
      switch self {
      case .absent:
        "no service for userfaultfd runs (sudo systemctl enable --now dormouse-userfault.socket)"
      case .notPermitted:
        "this user may not use the service for userfaultfd (sudo adduser $USER dormouse; it "
          + "applies from the user's next login on)"
      case .noAnswer: "the service for userfaultfd doesn't answer"
      case .refused(.busy): "the service for userfaultfd is busy with requests of this user"
      case .refused(.namespace):
        "the service for userfaultfd refuses user namespaces (containers, sandboxes)"
      case .refused(.request), .refused(.descriptor):
        "the service for userfaultfd refused the request; it may have another version"
      case .failed(let error): "the service for userfaultfd: \(error)"
      }
    }
  }

  /// Gets an open descriptor of /dev/userfaultfd.
  public static func openDevice(at path: String = path) throws(Failure) -> Descriptor {
    guard let device = try request(.device, at: path).first else { throw .noAnswer }
    return device
  }

  /// Negotiates the features of a userfaultfd. The kernel permits that once for each.
  public static func negotiate(
    _ userfault: Descriptor, tracksWrites: Bool, at path: String = path
  ) throws(Failure) {
    _ = try request(
      tracksWrites ? .negotiateTracking : .negotiate, passing: userfault, at: path)
  }

  /// Tries the service with a userfaultfd of this process. The trial also starts the service if it
  /// isn't running.
  public static func tryOut(at path: String = path) throws(Failure) {
    var raw = clinux_open_userfault(-1)
    if raw == -EPERM {
      let device = try openDevice(at: path)
      raw = withExtendedLifetime(device) { clinux_open_userfault(device.raw) }
    }
    if raw < 0 { throw .failed(SystemCallError("userfaultfd", on: "of this process", code: -raw)) }
    try negotiate(Descriptor(owning: raw), tracksWrites: false, at: path)
  }

  private static func request(
    _ request: UserfaultRequest, passing passed: Descriptor? = nil, at path: String
  ) throws(Failure) -> [Descriptor] {
    let deadline = Deadline(in: timeout)
    while true {
      let answer = try exchange(request, passing: passed, at: path, until: deadline)
      switch answer?.reply {
      case .done: return answer?.passed ?? []
      case .failed(let code):
        throw .failed(SystemCallError(request.rawValue, on: "/dev/userfaultfd", code: code))
      case .refused(.busy) where !deadline.hasPassed: break
      case .refused(let refusal): throw .refused(refusal)
      case nil: if deadline.hasPassed { throw .noAnswer }
      }
      pauseThread(for: .milliseconds(20))
    }
  }

  /// Sends one request.
  ///
  /// - Returns: the answer; nil if the service accepts no connection of this user now.
  private static func exchange(
    _ request: UserfaultRequest, passing passed: Descriptor?, at path: String,
    until deadline: Deadline
  ) throws(Failure) -> (reply: UserfaultReply, passed: [Descriptor])? {
    do throws(SystemCallError) {
      let socket = try UnixSocket.connected(to: path, .packets)
      // Another user's process doesn't get the userfaultfd, with which it could change the memory.
      guard socket.hasTrustedPeer else {
        throw SystemCallError("connect", on: path, code: EACCES)
      }
      let bytes = Array(request.rawValue.utf8)
      if let passed {
        try shim("sendmsg", on: path) {
          clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), passed.raw)
        }
      } else {
        _ = try shim("send", on: path) { socket.send(bytes, waits: false) }
      }
      var received: [UInt8] = []
      while try pollDescriptor(socket.raw, for: POLLIN, until: deadline) {
        guard
          let reception = try Reception.receive(from: socket, UserfaultReply.maxLength, &received)
        else { continue }
        guard let reply = UserfaultReply(String(decoding: received, as: UTF8.self)) else { break }
        return (reply, reception.passed)
      }
    } catch {
      switch error.code {
      // A busy service closes the connection, which may overtake its answer.
      case EAGAIN, ECONNRESET, EPIPE: return nil
      case ENOENT, ECONNREFUSED: throw .absent
      case EACCES, EPERM: throw .notPermitted
      default: throw .failed(error)
      }
    }
    throw .noAnswer
  }
}
