import Glibc
import Linux
import Synchronization

/// Copies pages out of stopped processes, compresses them and appends them to an image, on several
/// threads ("lanes"). It uses two chunk buffers and two compressors per lane, whatever the worker's
/// size.
struct Capture: Sendable {
  let chunks: [PagePlan.PlannedChunk]
  /// The memory of each process, by the chunks' process index.
  let memories: [ProcessMemory]
  let writer: ImageWriter
  let compression: Compression
  var access = ForcedAccess.anyThread
  var standstill: Standstill?
  /// True if the processes run: memory that they unmap meanwhile is left out.
  var isAhead = false

  /// Captures all chunks. The calling thread must trace the processes: some pages may be readable
  /// for it only (`ForcedAccess`).
  func run(lanes: Int) throws {
    let (shared, tracerOnly) = access.split(chunks) { $0.kind.readable }
    try run(shared, lanes: lanes)
    try run(tracerOnly, lanes: 1)
  }

  private func run(_ chunks: [PagePlan.PlannedChunk], lanes: Int) throws {
    let failure = FirstFailure()
    inParallel(count: chunks.count, lanes: lanes) { next in
      failure.record {
        let lane = try Lane(compression)
        while let index = next(), !failure.hasFailed {
          try self.standstill?.check()
          try lane.capture(
            chunks[index], from: self.memories, to: self.writer, isAhead: self.isAhead)
        }
      }
    }
    try failure.rethrow()
  }

  private final class Lane {
    let compressor: ChunkCompressor
    /// The compressor for pages that are needed soon.
    let fastCompressor: ChunkCompressor
    let pages = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
    let compressed = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.storedLength, alignment: 64)

    init(_ compression: Compression) throws(CompressionError) {
      compressor = try ChunkCompressor(compression)
      fastCompressor = try ChunkCompressor(.nearlyNone)
    }

    deinit {
      pages.deallocate()
      compressed.deallocate()
    }

    func capture(
      _ chunk: PagePlan.PlannedChunk, from memories: [ProcessMemory], to writer: ImageWriter,
      isAhead: Bool
    ) throws {
      guard let base = pages.baseAddress else { return }
      do throws(SystemCallError) {
        try memories[chunk.process].read(chunk.ranges, into: base, direct: chunk.kind.readable)
      } catch {
        if isAhead, error.code == EIO { return }
        throw error
      }
      var ranges = chunk.ranges
      var length = Int(chunk.length)
      if chunk.kind.absentIsZero, !chunk.kind.isPrefetched {
        (ranges, length) = dropZeroPages(ranges)
      }
      if length == 0 { return }
      let source = UnsafeRawBufferPointer(rebasing: pages[..<length])
      let size =
        chunk.kind.isPrefetched
        ? try fastCompressor.compress(source, into: compressed)
        : try compressor.compress(source, into: compressed)
      try writer.append(
        UnsafeRawBufferPointer(rebasing: compressed[..<size]),
        ImageChunk(
          process: UInt32(chunk.process), writable: chunk.kind.writable,
          isPrefetched: chunk.kind.isPrefetched, isBackgroundFilled: chunk.kind.isBackgroundFilled,
          offset: 0,
          storedLength: 0, ranges: ranges))
    }

    /// Removes pages that hold only zeros from the buffer. Returns the ranges and the number of
    /// bytes that remain.
    private func dropZeroPages(_ ranges: [PageRange]) -> ([PageRange], Int) {
      guard let base = pages.baseAddress else { return ([], 0) }
      var kept: [PageRange] = []
      var source = 0
      var target = 0
      let size = Int(pageSize)
      for range in ranges {
        for page in range.pages {
          defer { source += size }
          if Self.isZero(base + source, size) { continue }
          if target != source { memcpy(base + target, base + source, size) }
          target += size
          kept.appendBehind(PageRange(address: page, length: pageSize))
        }
      }
      return (kept, target)
    }

    private static func isZero(_ page: UnsafeMutableRawPointer, _ size: Int) -> Bool {
      page.load(as: UInt64.self) == 0 && memcmp(page, page + 8, size - 8) == 0
    }
  }
}

/// Writes the pages of an image back into the processes that they came from, on several lanes.
struct WriteBack: Sendable {
  let image: ImageReader
  /// The memory of each process, by the chunks' process index. It is `nil` for a process that has
  /// ended and needs nothing.
  let memories: [ProcessMemory?]
  /// It is set for a lazy restore. The chunks of the background fill are then left out, and the
  /// others are filled (userfaultfd) instead of written.
  var prefetch: Prefetch?
  /// The thread that writes the pages that the processes may not write themselves. `nil` means that
  /// every thread may write them.
  var tracer: WriteBackTracer?

  /// Writes all pages back. Returns the indices of processes that have no memory any more: they are
  /// being killed.
  func run(lanes: Int) throws -> [Int] {
    let vanished = VanishedProcesses()
    let steps = image.steps.filter { prefetch == nil || !$0.isBackgroundFilled }
    guard let tracer else {
      try restore(steps, lanes: lanes, vanished: vanished)
      return vanished.all
    }
    let refused = RefusedSteps()
    try restore(steps.filter(\.chunk.writable), lanes: lanes, vanished: vanished, refused: refused)
    let remaining = steps.filter { !$0.chunk.writable } + refused.all
    if !remaining.isEmpty {
      try tracer.perform { try restore(remaining, lanes: 1, vanished: vanished) }
    }
    return vanished.all
  }

  /// Restores steps. A step can be repeated: it writes the same bytes again.
  ///
  /// - Parameter refused: receives the steps that the kernel refuses to this thread. (A chunk of a
  ///   base says what its mapping permitted when the base was made.)
  private func restore(
    _ steps: [RestoreStep], lanes: Int, vanished: VanishedProcesses, refused: RefusedSteps? = nil
  ) throws {
    let failure = FirstFailure()
    // Chunks of the working set are barely compressed, so a thread pays only for more of them.
    inParallel(count: steps.count, lanes: lanes, indicesPerLane: prefetch == nil ? 3 : 6) { next in
      failure.record {
        let buffer = ChunkBuffer()
        while let index = next(), !failure.hasFailed {
          let process = steps[index].process
          guard let memory = self.memories[process], !vanished.contains(process) else { continue }
          let pages = try buffer.load(steps[index], of: self.image)
          do throws(SystemCallError) {
            if let prefetch = self.prefetch {
              try prefetch.fill(steps[index], from: pages, memory)
            } else {
              try memory.write(steps[index].ranges, from: pages)
            }
          } catch {
            if error.meansVanished {
              vanished.insert(process)
            } else if error.code == EIO, let refused {
              refused.add(steps[index])
            } else {
              throw error
            }
          }
        }
      }
    }
    try failure.rethrow()
  }

  private final class RefusedSteps: Sendable {
    private let steps = Mutex<[RestoreStep]>([])
    var all: [RestoreStep] { steps.withLock { $0 } }
    func add(_ step: RestoreStep) { steps.withLock { $0.append(step) } }
  }

  private final class VanishedProcesses: Sendable {
    private let processes = Mutex<Set<Int>>([])
    var all: [Int] { processes.withLock { $0.sorted() } }
    func contains(_ process: Int) -> Bool { processes.withLock { $0.contains(process) } }
    func insert(_ process: Int) { processes.withLock { _ = $0.insert(process) } }
  }
}

/// The thread that may write every page of the worker on a kernel with
/// `ForcedAccess.tracingThread`.
struct WriteBackTracer: Sendable {
  /// The processes that a thread has to seize before it may write to them. The list is empty if the
  /// calling thread traces them already. A frozen worker isn't traced by any thread.
  let untraced: [ProcessIdentity]

  func perform(_ body: @escaping @Sendable () throws -> Void) throws {
    if untraced.isEmpty { return try body() }
    let failure = FirstFailure()
    try BriefTracer.perform(tracing: untraced) { failure.record(body) }
    try failure.rethrow()
  }
}

extension ForcedAccess {
  /// Divides work into what every thread may do (`shared`), and what only the tracing thread may do
  /// (`tracerOnly`).
  func split<Item>(_ items: [Item], _ isFree: (Item) -> Bool) -> (
    shared: [Item], tracerOnly: [Item]
  ) {
    self == .anyThread ? (items, []) : (items.filter(isFree), items.filter { !isFree($0) })
  }
}

/// The first error of several lanes. The other lanes stop when they see it.
final class FirstFailure: Sendable {
  private let error = Mutex<(any Error)?>(nil)

  var hasFailed: Bool { error.withLock { $0 != nil } }

  func record(_ body: () throws -> Void) {
    do { try body() } catch let new { error.withLock { $0 = $0 ?? new } }
  }

  func rethrow() throws {
    if let error = error.withLock({ $0 }) { throw error }
  }
}
