import Glibc

enum Clock {
  static var nanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// Calls of `malloc` and its relatives, where `mallocs.c` is preloaded.
enum Mallocs {
  private typealias Counter = @convention(c) () -> UInt64
  private static let counter: Counter? = dlsym(nil, "malloc_calls").map {
    unsafeBitCast($0, to: Counter.self)
  }
  static var count: UInt64? { counter.map { $0() } }
}
