import Linux
import Synchronization

/// The chunks of a background fill that are still to be filled. A helper thread can decompress them
/// ahead of the pager: that takes most of a fill's time. The pager alone puts the pages in place,
/// because only it knows their present addresses.
final class ChunkReadAhead: @unchecked Sendable {
  // Unchecked: one thread at a time uses a buffer, and the state says which. The helper does while
  // `loading` names the buffer; the pager does from the moment when it is in `ready` until
  // `recycle`. The array itself is set before the helper starts.

  private struct State {
    var order: FillOrder
    var free: [Int] = []
    var loading: Int?
    var ready: [(chunk: Int, buffer: Int)] = []
    var isOver = false
  }

  /// A chunk for the pager, and where its pages are.
  enum Source {
    /// The helper has loaded the chunk into this buffer.
    case ready(chunk: Int, buffer: Int)
    /// The pager must read the chunk itself.
    case unread(chunk: Int)

    var chunk: Int {
      switch self {
      case .ready(let chunk, _), .unread(let chunk): chunk
      }
    }
  }

  private static let bufferCount = 3
  /// With fewer chunks, another thread isn't worth its start.
  private static let minChunksForHelper = 8
  private let image: ImageReader
  private let count: Int
  private var buffers: [ChunkBuffer] = []
  private let state: Mutex<State>
  /// Signalled when there is a free buffer, or the pager is done.
  private let bufferFreed = Semaphore()
  /// Signalled when a chunk is ready, or has failed.
  private let progress = Semaphore()
  private let ended = Semaphore()
  /// Used by the pager's thread only.
  private var hasHelper = false

  /// - Parameter chunks: all chunks that are to be filled, by their indices in `ImageReader.steps`.
  init(_ image: ImageReader, chunks: [Int]) {
    self.image = image
    count = chunks.count
    let order = FillOrder(
      chunks.map { ($0, image.steps[$0].ranges.first?.address ?? 0) })
    state = Mutex(State(order: order))
  }

  /// Starts the helper. If the chunks are few, or there is no memory or no thread for it, the pager
  /// reads all chunks itself.
  func start() {
    guard count >= Self.minChunksForHelper, onlineProcessors > 1 else { return }
    do throws(ZstdError) {
      while buffers.count < Self.bufferCount { buffers.append(try ChunkBuffer()) }
    } catch { return }
    state.withLock { $0.free = Array(0..<Self.bufferCount) }
    hasHelper = ShortThreads.start(name: "dormouse-ahead", apart: true) { self.work() }
  }

  /// Waits until the helper has ended.
  func finish() {
    guard hasHelper else { return }
    state.withLock { $0.isOver = true }
    bufferFreed.signal()
    ended.wait()
  }

  // MARK: the helper's thread

  private func work() {
    while let (chunk, buffer) = begin() {
      do throws(ImageError) {
        _ = try buffers[buffer].load(image.steps[chunk], of: image)
        state.withLock {
          $0.loading = nil
          $0.ready.append((chunk, buffer))
        }
      } catch {
        state.withLock {
          // The pager reads this chunk itself, and all others too: it can repeat the step, or
          // reports the error.
          $0.loading = nil
          $0.order.unclaim(chunk)
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
        state.loading = chunk
        return ((chunk, buffer), false)
      }
      if let work { return work }
      if isOver { return nil }
      bufferFreed.wait()
    }
  }

  // MARK: the pager's thread

  /// Returns a chunk that has to be filled, or `nil` if none is left. It may wait for the helper.
  func next() -> Source? {
    while true {
      let result = state.withLock { state -> (next: Source?, isWaiting: Bool) in
        if !state.ready.isEmpty {
          let (chunk, buffer) = state.ready.removeFirst()
          return (.ready(chunk: chunk, buffer: buffer), false)
        }
        if let chunk = state.order.claimNext() { return (.unread(chunk: chunk), false) }
        return (nil, state.loading != nil)
      }
      if let next = result.next { return next }
      if !result.isWaiting { return nil }
      progress.wait()
    }
  }

  /// Returns a certain chunk, because a thread of the worker waits for it. If the helper has begun
  /// with the chunk, this waits for the helper.
  func claim(_ chunk: Int) -> Source {
    while true {
      let next = state.withLock { state -> Source? in
        state.order.prioritizeNeighbors(of: chunk)
        if let index = state.ready.firstIndex(where: { $0.chunk == chunk }) {
          return .ready(chunk: chunk, buffer: state.ready.remove(at: index).buffer)
        }
        if state.loading == chunk { return nil }
        _ = state.order.claim(chunk)
        return .unread(chunk: chunk)
      }
      if let next { return next }
      progress.wait()
    }
  }

  /// Returns the pages of a ready chunk. They are valid until `recycle`.
  func pages(in buffer: Int) -> UnsafeRawPointer { buffers[buffer].loaded }

  func recycle(_ buffer: Int) {
    state.withLock { $0.free.append(buffer) }
    bufferFreed.signal()
  }
}
