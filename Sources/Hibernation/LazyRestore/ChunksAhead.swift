import Linux
import Synchronization

/// The chunks of a background fill that are still to be filled. A thread of its own can decompress them ahead of the pager:
/// that takes most of a fill's time. The pages are put in place by the pager alone, because only it knows where they belong.
final class ChunksAhead: @unchecked Sendable {
  // Unchecked: a buffer is used by one thread at a time. The state says by which: by the helper while `inWork` names it, and by the
  // pager from its place in `ready` until `recycle`. The array itself is set before the helper starts.

  private struct State {
    var order: FillOrder
    var free: [Int] = []
    var inWork: Int?
    var ready: [(chunk: Int, buffer: Int)] = []
    var isOver = false
  }

  /// A chunk for the pager.
  enum Next {
    case ready(chunk: Int, buffer: Int)
    /// The pager reads it itself.
    case own(chunk: Int)

    var chunk: Int {
      switch self {
      case .ready(let chunk, _), .own(let chunk): chunk
      }
    }
  }

  private static let bufferCount = 3
  private let image: ImageReader
  private var buffers: [ChunkBuffer] = []
  private let state: Mutex<State>
  /// There is a free buffer, or the pager is done.
  private let room = Semaphore()
  /// A chunk is ready, or has failed.
  private let progress = Semaphore()
  private let ended = Semaphore()
  /// Of the pager's thread.
  private var hasHelper = false

  /// - Parameter chunks: all that are to be filled.
  init(_ image: ImageReader, chunks: [Int]) {
    self.image = image
    let order = FillOrder(
      chunks.map { ($0, image.steps[$0].ranges.first?.address ?? 0) })
    state = Mutex(State(order: order))
  }

  /// Starts the helper. Without memory or a thread for it, the pager reads all chunks itself.
  func start() {
    do throws(ZstdError) {
      while buffers.count < Self.bufferCount { buffers.append(try ChunkBuffer()) }
    } catch { return }
    state.withLock { $0.free = Array(0..<Self.bufferCount) }
    hasHelper = ShortThreads.start(name: "dormouse-ahead", apart: true) { self.work() }
  }

  /// Waits for the helper's end.
  func finish() {
    guard hasHelper else { return }
    state.withLock { $0.isOver = true }
    room.signal()
    ended.wait()
  }

  // MARK: the helper's thread

  private func work() {
    while let (chunk, buffer) = begin() {
      do throws(ImageError) {
        _ = try buffers[buffer].load(image.steps[chunk], of: image)
        state.withLock {
          $0.inWork = nil
          $0.ready.append((chunk, buffer))
        }
      } catch {
        state.withLock {
          // The pager reads it itself, and all others too: it has the patience, or reports the error.
          $0.inWork = nil
          $0.order.giveBack(chunk)
          $0.isOver = true
        }
      }
      progress.signal()
    }
    ended.signal()
  }

  private func begin() -> (chunk: Int, buffer: Int)? {
    while true {
      let (work, isOver) = state.withLock { state -> ((chunk: Int, buffer: Int)?, Bool) in
        if state.isOver { return (nil, true) }
        guard let buffer = state.free.popLast() else { return (nil, false) }
        guard let chunk = state.order.claimNext() else { return (nil, true) }
        state.inWork = chunk
        return ((chunk, buffer), false)
      }
      if let work { return work }
      if isOver { return nil }
      room.wait()
    }
  }

  // MARK: the pager's thread

  /// A chunk that has to be filled; `nil` if none is left.
  func next() -> Next? {
    while true {
      let found = state.withLock { state -> (next: Next?, isWaiting: Bool) in
        if !state.ready.isEmpty {
          let (chunk, buffer) = state.ready.removeFirst()
          return (.ready(chunk: chunk, buffer: buffer), false)
        }
        if let chunk = state.order.claimNext() { return (.own(chunk: chunk), false) }
        return (nil, state.inWork != nil)
      }
      if let next = found.next { return next }
      if !found.isWaiting { return nil }
      progress.wait()
    }
  }

  /// A certain chunk, for a thread of the worker that waits for it. A chunk that the helper has begun with is waited for.
  func take(_ chunk: Int) -> Next {
    while true {
      let next = state.withLock { state -> Next? in
        state.order.isWanted(chunk)
        if let index = state.ready.firstIndex(where: { $0.chunk == chunk }) {
          return .ready(chunk: chunk, buffer: state.ready.remove(at: index).buffer)
        }
        if state.inWork == chunk { return nil }
        _ = state.order.claim(chunk)
        return .own(chunk: chunk)
      }
      if let next { return next }
      progress.wait()
    }
  }

  /// The pages of a ready chunk, until `recycle`.
  func pages(in buffer: Int) -> UnsafeRawPointer { buffers[buffer].loaded }

  func recycle(_ buffer: Int) {
    state.withLock { $0.free.append(buffer) }
    room.signal()
  }
}
