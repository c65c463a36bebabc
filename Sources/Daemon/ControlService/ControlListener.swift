import CLinux
import Glibc
import Linux

/// The control socket's listening end, which accepts clients of the daemon's own user and of root.
/// If there are no descriptors or no memory for another client, the event loop doesn't become busy.
/// It belongs to the event loop's thread.
final class ControlListener {
  private let path: String
  private let listener: Descriptor
  private let loop: EventLoop
  private let log: DaemonLog
  private var watch: EventLoop.Token?
  /// A descriptor that is closed for a moment when none is left; see `refuse`.
  private var spare: Descriptor?
  /// The maximum number of clients that are accepted before other descriptors have their turn.
  private static let maxAtOnce = 16

  init(path: String, _ loop: EventLoop, _ log: DaemonLog) throws(StartError) {
    self.path = path
    self.loop = loop
    self.log = log
    let directory = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    do throws(StartError) {
      _ = try openTrusted(directory, making: true, as: .shared)
    } catch {
      if case .directory(let failure) = error { throw .socket(path: path, failure.description) }
      throw error
    }
    // A daemon that answers here has another state directory. The lock would have refused the same
    // one.
    if let other = try? UnixSocket.connected(to: path, .stream), !Self.isOfKilledProcess(other) {
      throw .inUse(path: path)
    }
    do throws(SystemCallError) {
      listener = try UnixSocket.bound(to: path, .stream)
      UnixSocket.refuseDescriptors(listener)
      try listener.listen(backlog: 64, path: path)
    } catch { throw .socket(path: path, error.reason) }
    openSpare()
  }

  /// True if the process that listens was killed. A thread that can't end keeps its socket open.
  private static func isOfKilledProcess(_ connection: Descriptor) -> Bool {
    // A process that can't be examined counts as a daemon that runs.
    guard let peer = try? PeerCredentials(of: connection.raw),
      let process = try? ProcessIdentity.current(of: peer.process)
    else { return false }
    return process.isEnding
  }

  static func check(path: String) throws(StartError) {
    guard path.utf8.count > UnixSocket.maxPath else { return }
    throw .socket(
      path: path,
      "the path has \(path.utf8.count) bytes, more than the kernel's limit of "
        + "\(UnixSocket.maxPath); choose a shorter one with --socket or DORMOUSE_CONTROL_SOCKET")
  }

  /// Begins to accept clients.
  ///
  /// - Parameters:
  ///   - isFull: while it returns true, further clients wait in the kernel's queue, until `resume`
  ///     is called.
  ///   - admit: called for a client that has connected.
  func begin(
    isFull: @escaping () -> Bool, admit: @escaping (Descriptor, PeerCredentials) -> Void
  ) throws(SystemCallError) {
    watch = try loop.watch(listener, .readable) { [unowned self] _ in
      accept(isFull: isFull, admit: admit)
    }
  }

  func resume() { setListening(.readable) }

  func close() { discardFile(path) }

  private func accept(isFull: () -> Bool, admit: (Descriptor, PeerCredentials) -> Void) {
    for _ in 0..<Self.maxAtOnce {
      guard !isFull() else { return setListening([]) }
      let raw = clinux_accept(listener.raw)
      if raw == -EMFILE || raw == -ENFILE { return refuse() }
      if raw == -ECONNABORTED || raw == -EINTR { continue }
      if raw < 0 { return raw == -EAGAIN ? () : pause(code: -raw) }
      let descriptor = Descriptor(foreign: raw)
      if let peer = trustedPeer(of: descriptor) { admit(descriptor, peer) }
    }
  }

  /// Refuses clients, one in each turn. Without descriptors none can be accepted, and a client that
  /// waits would keep the listener readable and the event loop busy.
  private func refuse() {
    log(.warning, "refused a client: out of descriptors (RLIMIT_NOFILE)")
    spare = nil
    let raw = clinux_accept(listener.raw)
    if raw >= 0 { Closer.shared.close(raw) }
    openSpare()
    guard spare == nil else { return }
    // Another thread is still closing that client's descriptor: the last close of a socket may
    // wait.
    setListening([])
    loop.after(.milliseconds(20)) { [weak self] in
      self?.openSpare()
      self?.resume()
    }
  }

  private func openSpare() {
    // If no descriptor is left, the refusal of the next client shows it.
    if spare == nil { spare = try? Descriptor.open("/dev/null") }
  }

  /// Stops accepting clients for 1 s. Without memory the listener stays readable, and nothing else
  /// helps.
  private func pause(code: Int32) {
    log(.warning, "can't accept clients for 1 s: \(errorText(code))")
    setListening([])
    loop.after(.seconds(1)) { [weak self] in self?.resume() }
  }

  private func setListening(_ interest: Epoll.Interest) {
    guard let watch else { return }
    // epoll_ctl(2) on a watched descriptor fails only without memory. The next client tries it
    // again.
    try? loop.change(listener, watch, to: interest)
  }

  /// The credentials of a client; nil if its user may not use the socket. Only the daemon's own
  /// user and root may.
  private func trustedPeer(of descriptor: Descriptor) -> PeerCredentials? {
    // A client without credentials has closed its connection.
    guard let peer = try? PeerCredentials(of: descriptor.raw) else { return nil }
    if peer.user == 0 || peer.user == getuid() { return peer }
    log(.warning, "refused a client with user id \(peer.user) (pid \(peer.process))")
    return nil
  }
}
