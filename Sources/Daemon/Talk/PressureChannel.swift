import Linux
import Supervision

/// `MEMORY_PRESSURE_WATCH` of one run of a worker on the loop. Belongs to the loop's thread.
final class PressureChannel {
  private let socket: PressureWatch
  private let watches: any DescriptorWatches
  private var watch: EventLoop.Token?
  /// The worker has connected once.
  private(set) var hasListened = false

  init(_ socket: PressureWatch, _ watches: any DescriptorWatches) {
    self.socket = socket
    self.watches = watches
  }

  deinit { end() }

  var path: String { socket.path }

  /// For `ShedRequestRun`; nil: nothing listens.
  var listened: PressureWatch? { socket.listenerCount > 0 ? socket : nil }

  /// - Parameters:
  ///   - connected: called at the first connection.
  ///   - failed: it couldn't be looked at what has come.
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
