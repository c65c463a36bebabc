import ArgumentParser
import Control
import FootprintTrace
import PolicyFile

struct FootprintCompareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Compare two recorded footprints: peak, average, what warnings freed.",
    discussion: """
      A is the earlier version of a program, B the later one. With --fail-if-… the exit code is 1 \
      if B has grown by more than that, and standard error has the reason: for CI.

      Examples:
        dormouse footprint compare main.footprint branch.footprint
        dormouse footprint compare a.footprint b.footprint --fail-if-peak-grows 10%
      """)
  @Option(
    help: ArgumentHelp(
      "Exit with 1 if the peak has grown by more than this.", valueName: "10%|size"))
  var failIfPeakGrows: GrowthLimit?
  @Option(
    help: ArgumentHelp(
      "Exit with 1 if the average over time has grown by more than this.", valueName: "10%|size"))
  var failIfAverageGrows: GrowthLimit?
  @Option(
    help: ArgumentHelp(
      "Exit with 1 if the footprint at the end has grown by more than this.",
      valueName: "10%|size"))
  var failIfRestGrows: GrowthLimit?
  @OptionGroup var over: OverOption
  @OptionGroup var drawing: TerminalDrawing
  @Option(
    help: ArgumentHelp("Also draw both into this SVG file.", valueName: "file"),
    completion: .file())
  var svg: String?
  @Flag(help: "Print JSON, and no picture (docs/json.md).") var json = false
  @Argument(help: "The first recording.", completion: .file()) var a: String
  @Argument(help: "The second recording.", completion: .file()) var b: String

  func run() throws {
    let limit = try over.bytes()
    let (first, second) = (try RecordingFiles.read(a), try RecordingFiles.read(b))
    var comparison = RecordingComparison((a, first), (b, second), limit: limit)
    comparison.exceeded = excesses(of: comparison)
    if let svg { try PictureFile(svg).write(comparison.picture(first, second)) }
    if json {
      try Output.json(comparison)
    } else {
      let lines = renderComparison(comparison, of: first, with: second, style: drawing.style)
      try Output.line(lines.joined(separator: "\n"))
    }
    if !comparison.exceeded.isEmpty {
      throw CommandFailure(
        .notDone, escaped("\(b): \(comparison.exceeded.joined(separator: "; "))"))
    }
  }

  private func excesses(of comparison: RecordingComparison) -> [String] {
    let limits = [
      ("peak", failIfPeakGrows), ("average", failIfAverageGrows), ("rest", failIfRestGrows),
    ]
    return limits.compactMap { key, limit in
      comparison.metric(key).flatMap { limit?.excess(of: $0) }
    }
  }
}

extension GrowthLimit: ExpressibleByArgument {
  /// Reads a share such as `10%` or `2.5%`, or a size.
  public init?(argument: String) {
    if argument.hasSuffix("%") {
      guard let share = Double(argument.dropLast()), (0...100_000).contains(share) else {
        return nil
      }
      self = .percent(share)
    } else if case .success(let bytes) = OptionUnits.size(argument) {
      self = .bytes(bytes)
    } else {
      return nil
    }
  }
}
