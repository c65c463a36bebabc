import Glibc

/// Counts allocations, where `Benchmarks/Engine/mallocs.c` is preloaded.
enum Allocations {
  private typealias Counter = @convention(c) () -> UInt64

  private static let counter: Counter? = dlsym(nil, "malloc_calls").map {
    unsafeBitCast($0, to: Counter.self)
  }

  /// The mean number for one of `times` calls; `nil`: allocations aren't counted here.
  static func each(_ times: Int, _ body: () -> Void) -> Double? {
    guard let counter else { return nil }
    let before = counter()
    body()
    return Double(counter() - before) / Double(times)
  }
}
