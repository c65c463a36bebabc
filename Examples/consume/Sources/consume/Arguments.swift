/// The options for steps without commands.
struct Arguments {
  /// The number of steps; nil for no limit.
  var steps: Int?
  /// The interval of the steps; nil if the program waits for commands.
  var every: Duration?

  static let usage = """
    usage: consume [--steps N] [--every TIME]

    An object cache that consumes a megabyte a step, and gives all of it back when it is warned of \
    low
    memory: by its Dormouse daemon, by SIGUSR1, or by `warn`.

      --steps N      N steps by itself, and then it waits
      --every TIME   a step every 200ms, 1s, …; without --steps for ever

    Commands on standard input: consume [N], warn, drop, footprint, quit.
    """

  init?(_ arguments: some Sequence<String>) {
    var arguments = arguments.makeIterator()
    while let word = arguments.next() {
      guard let value = arguments.next() else { return nil }
      switch word {
      case "--steps":
        guard let number = Int(value), number >= 0 else { return nil }
        steps = number
      case "--every":
        guard let time = Self.duration(value) else { return nil }
        every = time
      default: return nil
      }
    }
    if steps != nil, every == nil { every = .milliseconds(200) }
  }

  private static func duration(_ text: String) -> Duration? {
    for (unit, milliseconds) in [("ms", 1.0), ("s", 1000.0)] where text.hasSuffix(unit) {
      guard let number = Double(text.dropLast(unit.count)), (0...86_400).contains(number) else {
        return nil
      }
      return .milliseconds(number * milliseconds)
    }
    return nil
  }
}
