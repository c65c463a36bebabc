import Glibc

extension UnsafeMutableRawBufferPointer {
  /// Returns the buffer's memory to the kernel until its next use. Its content is lost. Only whole
  /// pages that belong to the buffer alone are returned. If that fails, the memory stays.
  public func releasePages() {
    guard let base = baseAddress else { return }
    let (start, size) = (UInt(bitPattern: base), UInt(pageSize))
    let first = (start + size - 1) / size * size
    let end = (start + UInt(count)) / size * size
    guard first < end, let address = UnsafeMutableRawPointer(bitPattern: first) else { return }
    madvise(address, Int(end - first), MADV_DONTNEED)
  }
}
