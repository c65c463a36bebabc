// What WorkerKit costs: Benchmarks/README.md. The only target that links Foundation, for its
// NSCache.

@main enum Main {
  static func main() async throws {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 15
    var table = Table()
    CacheBenchmark.run(rounds: rounds, into: &table)
    PurgeableBenchmark.run(rounds: rounds, into: &table)
    try await WarningBenchmark.run(rounds: rounds, into: &table)
    table.print()
  }
}
