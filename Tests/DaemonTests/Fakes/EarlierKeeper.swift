import Glibc
import Linux
import Synchronization
import TestSupport

@testable import Hibernation

/// The keeper of a daemon that has ended, on a thread of the test. It keeps the memory of the
/// test's own process, and serves one daemon.
final class EarlierKeeper {
  enum End {
    /// The keeper ends: another keeper has the descriptors, or no daemon needs them.
    case taken
    /// The keeper waits for a later daemon.
    case stays
  }

  private let serving: Serving
  let process: ProcessIdentity
  let memory: Descriptor

  private final class Serving: Sendable {
    let end = Mutex<End?>(nil)
  }

  init(at path: String) throws {
    let identity = try ProcessStat.read(getpid()).identity
    let memory = try Descriptor.open("/proc/\(getpid())/mem", O_RDWR)
    (process, self.memory) = (identity, memory)
    let listener = try UnixSocket.bound(to: path, .packets)
    try listener.listen(backlog: 4, path: path)
    // The keeper's thread waits for the daemon.
    try listener.setFlags(0)
    let serving = Serving()
    self.serving = serving
    try TestThread {
      var raw = accept(listener.raw, nil, nil)
      while raw < 0, errno == EINTR { raw = accept(listener.raw, nil, nil) }
      let peer = Descriptor(owning: raw)
      // A daemon that doesn't get the messages has closed its end.
      try? KeeperMessage.keep(identity).send(to: peer, passing: memory)
      try? KeeperMessage.end.send(to: peer)
      var end: End?
      while end == nil {
        switch KeeperMessage.receive(from: peer) {
        case .message(.confirmed, _): end = .taken
        case .closed: end = .stays
        case .message, .nothing: usleep(1000)
        }
      }
      serving.end.withLock { [end] in $0 = end }
    }.detach()
  }

  /// How the keeper ended; nil: a daemon still has its connection, or none has connected.
  var end: End? { serving.end.withLock { $0 } }
}
