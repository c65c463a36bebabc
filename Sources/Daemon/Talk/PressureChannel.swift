import Linux
import Supervision

/// The `MEMORY_PRESSURE_WATCH` of one run of a worker, watched by the event loop. It belongs to the
/// event loop's thread.
final class PressureChannel {
  private let socket: PressureWatch
  private let watches: any DescriptorWatches
  private var watch: EventLoop.Token?
  /// Whether the worker has connected at least once.
  private(set) var hasListened = false

  init(_ socket: PressureWatch, _ watches: any DescriptorWatches) {
    self.socket = socket
    self.watches = watches
  }

  deinit { end() }

  var path: String { socket.path }

  /// The socket for requests for memory; nil if nothing listens.
  var listened: PressureWatch? { socket.listenerCount > 0 ? socket : nil }

  /// Starts to watch the socket.
  ///
  /// - Parameters:
  ///   - connected: called at the first connection.
  ///   - failed: called if the socket can't be serviced.
  func listen(
    connected: @escaping () -> Void, failed: @escaping (SystemCallError) -> Void
  ) throws(SystemCallError) {
    guard watch == nil else { return }
    watch = try watches.whenReadable(socket.descriptor) { [unowned self] in
      do throws(SystemCallError) { try socket.service() } catch { failed(error) }
      guard socket.listenerCount > 0, !hasListened else { return }
      hasListened = true
      connected()
    }
  }

  func end() {
    if let watch { watches.unwatch(socket.descriptor, watch) }
    watch = nil
  }
}
