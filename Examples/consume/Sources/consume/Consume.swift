import WorkerKit

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

@main struct Consume {
  /// The cache of all objects. They can be made again, so WorkerKit empties it on a warning.
  private let objects = MemoryCache<UInt64, Block>(name: "objects", costLimit: 0)

  static func main() async {
    let signals = warnings()
    if CommandLine.arguments.dropFirst() == ["--help"] { return say(Arguments.usage) }
    guard let arguments = Arguments(CommandLine.arguments.dropFirst()) else {
      say(Arguments.usage)
      exit(64)
    }
    Worker.shared.connect()
    let consume = Consume()
    Task { for await _ in signals { await consume.warn() } }
    if let every = arguments.every {
      Task { await consume.run(steps: arguments.steps ?? .max, every: every) }
    }
    for await line in commands() { await consume.perform(line) }
    // No more commands will come. With --every the program continues until a signal.
    while arguments.every != nil { try? await Task.sleep(for: .seconds(3600)) }
  }

  private func run(steps: Int, every: Duration) async {
    for _ in 0..<steps {
      try? await Task.sleep(for: every)
      step()
    }
  }

  private func step() {
    let key = UInt64.random(in: 0 ... .max)
    objects.insert(Block(seed: key), for: key, cost: Block.bytes)
  }

  // MARK: commands

  private func perform(_ line: String) async {
    let tokens = line.split(separator: " ")
    switch (tokens.first, tokens.count) {
    case (nil, _): break
    case ("consume"?, 1...2):
      guard let count = tokens.count == 1 ? 1 : Int(tokens[1]), (0...1_000_000).contains(count)
      else {
        return say("consume: how many steps?")
      }
      // The objects are made on all cores, as in a program that decodes pictures: each thread has
      // its own heap.
      await withDiscardingTaskGroup { group in
        for _ in 0..<count { group.addTask { step() } }
      }
      report("consumed \(count)")
    case ("warn"?, 1): await warn()
    case ("drop"?, 1):
      objects.removeAll()
      report("dropped")
    case ("footprint"?, 1): report("now")
    case ("quit"?, 1): exit(0)
    default: say("consume: commands are consume [N], warn, drop, footprint, quit")
    }
  }

  /// Does the same as a daemon's warning, without a daemon.
  private func warn() async {
    let (before, after) = await Worker.shared.simulateMemoryWarning()
    report("warned: \(megabytes(before.total - after.total)) freed")
  }

  private func report(_ what: String) {
    let count = objects.statistics.count
    let footprint = Footprint.current().total
    say("\(what); \(count) object\(count == 1 ? "" : "s"), footprint \(megabytes(footprint))")
  }
}

private func megabytes(_ bytes: Int64) -> String {
  let tenths = (bytes * 10 + (1 << 19)) >> 20
  return "\(tenths / 10).\(tenths.magnitude % 10) MB"
}
