import Glibc
import Linux

/// The ranges that are already registered with a userfaultfd while no process runs. Their pages are
/// filled, not written: a write would wait for its own page fault.
struct Prefetch: Sendable {
  private struct RegisteredRange {
    let range: PageRange
    let userfault: Userfault
    let tracksWrites: Bool
  }
  /// The registered ranges by the image's process index, sorted by address.
  private var registered: [Int: [RegisteredRange]] = [:]

  init(pagedProcesses: [PagedProcess], image: ImageReader) {
    for paged in pagedProcesses {
      registered[paged.index] = image.mappings.filter { Int($0.process) == paged.index }.map {
        RegisteredRange(
          range: $0.range, userfault: paged.handle.userfault, tracksWrites: paged.tracker != nil)
      }.sorted { $0.range.address < $1.range.address }
    }
  }

  /// Puts a step's pages in place.
  func fill(
    _ step: RestoreStep, from pages: UnsafeRawPointer, _ memory: ProcessMemory
  ) throws(SystemCallError) {
    let process = step.process
    if step.ranges.allSatisfy({ head(of: $0, in: process) == (nil, $0.length) }) {
      return try memory.write(step.ranges, from: pages)
    }
    var offset = 0
    for range in step.ranges {
      var remainder = range
      while remainder.length > 0 {
        // A range can reach beyond a mapping: the base was made with other mappings.
        let (index, length) = head(of: remainder, in: process)
        let (piece, tail) = remainder.split(after: length)
        if let target = index.flatMap({ registered[process]?[$0] }) {
          try fill(
            piece, from: pages + offset, with: target.userfault,
            tracked: target.tracksWrites && step.isInNextBase, memory: memory)
        } else {
          try memory.write([piece], from: pages + offset)
        }
        offset += Int(length)
        remainder = tail
      }
    }
  }

  private func fill(
    _ range: PageRange, from pages: UnsafeRawPointer, with userfault: Userfault, tracked: Bool,
    memory: ProcessMemory
  ) throws(SystemCallError) {
    var (done, longest) = (UInt64(0), range.length)
    while done < range.length {
      let address = range.address + done
      let length = min(range.length - done, longest)
      switch try userfault.fill(address, length, from: pages + Int(done), tracked: tracked) {
      case .filled(let count): done += count
      case .present:
        // The page appeared by itself while the worker slept, so its content is wrong.
        let page = PageRange(address: address, length: pageSize)
        try memory.write([page], from: pages + Int(done))
        done += pageSize
      case .vanished: throw SystemCallError("fill", on: "pid \(userfault.pid)", code: ESRCH)
      // The range reaches from one mapping into the next. The kernel fills one in a call.
      case .notRegistered where length > pageSize: longest = pageSize
      // The kernel was just changing the page tables.
      case .eventFirst where !userfault.hasEventInFlight: continue
      case .notRegistered, .eventFirst:
        // No process runs, so no mapping changes.
        let state = userfault.hasEventInFlight ? "being changed" : "not registered"
        throw SystemCallError(
          "fill", on: "0x\(String(address, radix: 16)) of pid \(userfault.pid), \(state)",
          code: EBUSY)
      }
    }
  }

  /// Returns the index of the registered mapping that has the first pages of a range, or `nil` if
  /// none has them, and the number of bytes for which that is true.
  private func head(of range: PageRange, in process: Int) -> (index: Int?, length: UInt64) {
    guard let ranges = registered[process] else { return (nil, range.length) }
    let index = ranges.partitioningIndex { $0.range.end > range.address }
    guard index < ranges.count, ranges[index].range.address < range.end else {
      return (nil, range.length)
    }
    let mapping = ranges[index].range
    if mapping.address > range.address { return (nil, mapping.address - range.address) }
    return (index, min(range.end, mapping.end) - range.address)
  }
}
