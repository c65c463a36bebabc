import Glibc
import Linux

extension Hibernator {
  /// Returns true if a worker whose daemon has ended still sleeps exactly as that daemon left it,
  /// so that the next daemon can leave it asleep. All of it is frozen, no process traces it, and
  /// its memory is in the complete image at `path`, or in place if `path` is `nil`. This changes
  /// nothing.
  ///
  /// It returns false in case of doubt: then `recover` proves and repairs the state.
  ///
  /// - Parameter expectation: what the worker's record says about its image.
  public static func isAtRest(
    _ target: HibernationTarget, on path: String?,
    expecting expectation: ImageExpectation = .unknown()
  ) -> Bool {
    // A worker that can't be examined isn't known to be at rest.
    guard target.cgroup?.freezer != nil, (try? target.isFrozen()) == true,
      let tree = try? target.discover(), !tree.isEmpty
    else { return false }
    for process in tree.processes {
      // A thread that can't be examined isn't known to be at rest.
      guard let status = try? ProcessStatus.read(process.pid), status.tracer == 0 else {
        return false
      }
    }
    guard let path else { return true }
    // An image that can't be read is no proof.
    guard let image = try? ImageReader(path: path), image.progress == .atRest,
      // It is also no proof if it isn't known whether the worker has run since.
      (try? image.wasRestored(to: target)) == false
    else { return false }
    do throws(HibernationError) { try image.check(isOf: target, expectation) } catch {
      return false
    }
    let recorded = Set(image.processes.map(\.identity))
    return tree.processes.allSatisfy { recorded.contains($0.identity) }
  }

  /// Returns the missing memory of a frozen worker whose daemon has ended, if it is trimmed with
  /// its image at `path`, so that the next daemon can leave it suspended. This changes nothing.
  ///
  /// - Returns: `nil` if it isn't trimmed, or in case of doubt.
  public static func missingOfSuspended(
    _ target: HibernationTarget, image path: String
  ) -> MissingBytes? {
    // An image that can't be read is no proof.
    guard let image = try? ImageReader(path: path), image.progress == .filling,
      image.processes.contains(where: { $0.identity == target.root }), image.lock(waits: false),
      // Nor is one of which it isn't known whether the worker has run since.
      (try? image.wasRestored(to: target)) == false,
      // Nor are journals that can't be read.
      let processes = try? findHandles(image), processes.areTrimmed
    else { return nil }
    // If the pages can't be examined, all of them count as missing until the worker runs.
    let bytes = (try? missingLength(of: processes, in: image)) ?? image.backgroundFillLength
    return MissingBytes(bytes, isTrimmed: true, in: ImageDirectory(of: path))
  }

  /// The number of bytes of a frozen worker that its image alone has.
  private static func missingLength(
    of pagedProcesses: [PagedProcess], in image: ImageReader
  ) throws -> UInt64 {
    var missing: UInt64 = 0
    for paged in pagedProcesses {
      let process = try LazyProcess(paged, image)
      process.didFind(
        try PageMap(pid: process.pid).populatedPages(inRegistered: process.mappings))
      missing += process.missingLength(in: image)
    }
    return missing
  }
}
