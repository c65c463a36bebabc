import CLinux
import Glibc

/// Lets go of this process's own code as far as it isn't needed right now: what ran at the start (arguments,
/// configuration files, the first launches) is the better part of what a daemon has in memory. The kernel keeps
/// the pages in its cache, and maps those that are used again on their next use. Constants as well, which are made
/// read-only for that where they lie beside variables.
///
/// Only mappings of files that can't be written and in which nothing differs from the file: dropping a
/// changed page would lose it. Locked pages (mlockall(2)) stay.
public func dropOwnCode() {
  _ = constantsAreProtected
  // Without /proc nothing is found that could be dropped.
  guard let mappings = try? MemoryMapping.all(of: getpid()) else { return }
  for mapping in mappings
  where mapping.hasFile && !mapping.writable && !mapping.shared && mapping.anonymous == 0 {
    guard let start = UnsafeMutableRawPointer(bitPattern: UInt(mapping.start)) else { continue }
    madvise(start, Int(mapping.length), MADV_DONTNEED)
  }
}

/// Once in a process.
private let constantsAreProtected = clinux_protect_constants() > 0
