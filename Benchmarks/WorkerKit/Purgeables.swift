import WorkerKit

enum PurgeableBenchmark {
  private static let operations = 500_000

  static func run(rounds: Int, into table: inout Table) {
    let worker = Worker(socketPath: nil)
    let data = PurgeableData(repeatElement(7, count: 4096), worker: worker)
    let plain = [UInt8](repeating: 7, count: 4096)
    let content = [UInt8](repeating: 7, count: 256 << 10)
    for _ in 0..<rounds {
      table.add("access of plain bytes", access { plain.withUnsafeBytes { Int($0[0]) } }, "ns")
      table.add(
        "access of PurgeableData", access { data.withContent { Int($0[0]) } ?? 0 }, "ns")
      let both = perOperation(threads: 2, operations) { _ in
        for _ in 0..<operations { _ = data.withContent { Int($0[0]) } }
      }
      table.add("access of the same PurgeableData on 2 threads", both, "ns")
      let made = nanoseconds {
        for _ in 0..<100 { _ = PurgeableData(content, worker: worker) }
      }
      table.add("256 KiB of PurgeableData made, filled and given back", made / 100 / 1000, "µs")
    }
  }

  @inline(never) private static func access(_ body: () -> Int) -> Double {
    var sum = 0
    let time = nanoseconds { for _ in 0..<operations { sum &+= body() } }
    precondition(sum == 7 * operations)
    return time / Double(operations)
  }
}
