import Glibc
import Linux

/// Ranges that are already registered with a userfaultfd while no process runs. Pages there are filled, not
/// written: a write would wait for its own page fault.
struct Prefetch: Sendable {
  private struct Place {
    let range: PageRange
    let userfault: Userfault
  }
  /// By the image's process index; by address.
  private var places: [Int: [Place]] = [:]

  init(parts: [PagerPart], image: ImageReader) {
    for part in parts {
      places[part.process] = image.mappings.filter { Int($0.process) == part.process }.map {
        Place(
          range: $0.range, userfault: part.handle.userfault)
      }.sorted { $0.range.address < $1.range.address }
    }
  }

  /// Fills a chunk's pages. Each of its ranges lies within one mapping, because it was captured that way.
  func place(
    _ chunk: ImageChunk, from pages: UnsafeRawPointer, _ memory: ProcessMemory
  ) throws(SystemCallError) {
    let process = Int(chunk.process)
    if !chunk.ranges.contains(where: { userfault(of: process, at: $0.address) != nil }) {
      return try memory.write(chunk.ranges, from: pages)
    }
    var offset = 0
    for range in chunk.ranges {
      if let userfault = userfault(of: process, at: range.address) {
        try fill(range, from: pages + offset, userfault: userfault, memory: memory)
      } else {
        try memory.write([range], from: pages + offset)
      }
      offset += Int(range.length)
    }
  }

  private func fill(
    _ range: PageRange, from pages: UnsafeRawPointer, userfault: Userfault,
    memory: ProcessMemory
  ) throws(SystemCallError) {
    var done: UInt64 = 0
    while done < range.length {
      let address = range.address + done
      switch try userfault.fill(address, range.length - done, from: pages + Int(done)) {
      case .filled(let count): done += count
      case .present:
        // The page appeared by itself while the worker slept, so its content is wrong.
        let page = PageRange(address: address, length: pageSize)
        try memory.write([page], from: pages + Int(done))
        done += pageSize
      case .vanished: throw SystemCallError("fill", on: "pid \(userfault.pid)", code: ESRCH)
      case .notRegistered, .eventFirst:
        // No process runs, so no mapping changes.
        throw SystemCallError(
          "fill", on: "0x\(String(address, radix: 16)) of pid \(userfault.pid)", code: EBUSY)
      }
    }
  }

  private func userfault(of process: Int, at address: UInt64) -> Userfault? {
    guard let places = places[process] else { return nil }
    var low = 0
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if places[middle].range.end <= address { low = middle + 1 } else { high = middle }
    }
    guard low < places.count, places[low].range.contains(address) else { return nil }
    return places[low].userfault
  }
}
