import Glibc

extension UnsafeMutableRawBufferPointer {
  /// Gives the buffer's memory back until its next use. What it had is lost. Only whole pages that belong to the buffer alone are
  /// given back; if that fails, the memory stays.
  public func releasePages() {
    guard let base = baseAddress else { return }
    let (start, size) = (UInt(bitPattern: base), UInt(pageSize))
    let first = (start + size - 1) / size * size
    let end = (start + UInt(count)) / size * size
    guard first < end, let place = UnsafeMutableRawPointer(bitPattern: first) else { return }
    madvise(place, Int(end - first), MADV_DONTNEED)
  }
}
