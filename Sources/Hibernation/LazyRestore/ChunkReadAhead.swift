import Linux
import Synchronization

/// The chunks of a background fill that are still to be filled. A helper thread can decompress them
/// ahead of the pager: that takes most of a fill's time. The pager alone puts the pages in place,
/// because only it knows their present addresses.
final class ChunkReadAhead: @unchecked Sendable {
  // Unchecked: one thread at a time uses a part of a buffer, and the state says which. The helper
  // writes to the part behind the chunks that it has loaded into the buffer; the pager reads a
  // chunk's part from the moment when the chunk is in `ready` until `recycle`. A buffer is free
  // when neither needs any of it. The array itself is set before the helper starts.

  private struct State {
    var order: FillOrder
    var free: [Int] = []
    var loading: Int?
    var ready: [Loaded] = []
    /// The number of chunks in each buffer that the pager needs; with one more for the buffer that
    /// the helper fills.
    var uses = [Int](repeating: 0, count: ChunkReadAhead.bufferCount)
    var isOver = false

    /// The chunk that the helper has claimed is loaded.
    mutating func finish(_ loaded: Loaded) {
      loading = nil
      uses[loaded.buffer] += 1
      ready.append(loaded)
    }

    /// The chunk that the helper has claimed isn't loaded, and another thread may claim it.
    mutating func giveBack(_ chunk: Int) {
      loading = nil
      order.unclaim(chunk)
    }
  }

  /// A chunk that the helper has loaded, and where it is.
  struct Loaded {
    let chunk: Int
    let step: RestoreStep
    fileprivate let buffer: Int
    fileprivate let offset: Int
  }

  /// A chunk for the pager, and where its pages are.
  enum Source {
    case ready(Loaded)
    /// The pager must read the chunk itself.
    case unread(chunk: Int, step: RestoreStep)

    var chunk: Int {
      switch self {
      case .ready(let loaded): loaded.chunk
      case .unread(let chunk, _): chunk
      }
    }

    var step: RestoreStep {
      switch self {
      case .ready(let loaded): loaded.step
      case .unread(_, let step): step
      }
    }
  }

  private static let bufferCount = 3
  /// The number of short chunks in a buffer. The helper waits for a free one, and two threads that
  /// wait for each other at each chunk need more time than the chunks.
  private static let chunksInBuffer = 8
  /// With fewer chunks, another thread isn't worth its start.
  private static let minChunksForHelper = 8
  private let image: ImageReader
  private let steps: RestoreSteps
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

  /// - Parameter chunks: all chunks that are to be filled, by their indices in `ImageReader.steps`,
  ///   sorted by address.
  init(_ image: ImageReader, chunks: [Int]) {
    self.image = image
    steps = image.steps
    count = chunks.count
    state = Mutex(State(order: FillOrder(chunks)))
  }

  /// Starts the helper. If the chunks are few, or there is no thread for it, the pager reads all
  /// chunks itself.
  func start() {
    guard count >= Self.minChunksForHelper, onlineProcessors > 1 else { return }
    buffers = (0..<Self.bufferCount).map { _ in ChunkBuffer() }
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
    while let buffer = nextBuffer() {
      var offset = 0
      var count = 0
      while count < Self.chunksInBuffer, let chunk = claimNext() {
        let step = steps[chunk]
        // A chunk of the base may be longer than what is needed of it.
        guard offset + step.chunk.length <= ImageLayout.chunkLength else {
          state.withLock { $0.giveBack(chunk) }
          progress.signal()
          break
        }
        do throws(ImageError) {
          try buffers[buffer].load(step, of: image, at: offset)
          let loaded = Loaded(chunk: chunk, step: step, buffer: buffer, offset: offset)
          state.withLock { $0.finish(loaded) }
        } catch {
          state.withLock {
            // The pager reads this chunk itself, and all others too: it can repeat the step, or
            // reports the error.
            $0.giveBack(chunk)
            $0.isOver = true
          }
        }
        progress.signal()
        offset += step.length
        count += 1
      }
      release(buffer)
      if count == 0 { break }
    }
    ended.signal()
  }

  /// Waits for a free buffer. Returns `nil` when nothing is left to be loaded.
  private func nextBuffer() -> Int? {
    while true {
      let (buffer, isOver) = state.withLock { state -> (Int?, Bool) in
        if state.isOver { return (nil, true) }
        guard let buffer = state.free.popLast() else { return (nil, false) }
        state.uses[buffer] = 1
        return (buffer, false)
      }
      if buffer != nil || isOver { return buffer }
      bufferFreed.wait()
    }
  }

  private func claimNext() -> Int? {
    state.withLock { state in
      if state.isOver { return nil }
      state.loading = state.order.claimNext()
      return state.loading
    }
  }

  /// Ends one use of a buffer.
  private func release(_ buffer: Int) {
    let isFree = state.withLock { state in
      state.uses[buffer] -= 1
      if state.uses[buffer] == 0 { state.free.append(buffer) }
      return state.uses[buffer] == 0
    }
    if isFree { bufferFreed.signal() }
  }

  // MARK: the pager's thread

  /// Returns a chunk that has to be filled, or `nil` if none is left. It may wait for the helper.
  func next() -> Source? {
    while true {
      let result = state.withLock { state -> (next: Source?, isWaiting: Bool) in
        if !state.ready.isEmpty {
          return (.ready(state.ready.removeFirst()), false)
        }
        if let chunk = state.order.claimNext() {
          return (.unread(chunk: chunk, step: steps[chunk]), false)
        }
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
          return .ready(state.ready.remove(at: index))
        }
        if state.loading == chunk { return nil }
        _ = state.order.claim(chunk)
        return .unread(chunk: chunk, step: steps[chunk])
      }
      if let next { return next }
      progress.wait()
    }
  }

  /// Returns the pages of a chunk. They are valid until `recycle`.
  func pages(of chunk: Loaded) -> UnsafeRawPointer {
    buffers[chunk.buffer].loaded(at: chunk.offset)
  }

  func recycle(_ chunk: Loaded) { release(chunk.buffer) }
}
