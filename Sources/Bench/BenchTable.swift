import Control
import Drawing

extension BenchReport {
  /// The report as text.
  ///
  /// - Parameter width: The width of the terminal in columns.
  public func rendered(width: Int, color: Bool) -> String {
    let bold = { (text: String) in color ? Color.bold.paint(text) : text }
    var lines = [bold(Self.row(["mechanism (ms)", "n", "min", "median", "p95", "max"]))]
    for result in mechanisms {
      if let numbers = result.statistics {
        let cells = [numbers.minimum, numbers.median, numbers.p95, numbers.maximum]
        lines.append(
          Self.row([result.title, "\(result.milliseconds.count)"] + cells.map(millisecondsText)))
      } else if let reason = result.refusal {
        lines += hanging(
          padded(result.title, to: Self.columns[0] + 2), "not measured: \(escaped(reason))",
          to: width, minColumns: 30)
      }
    }
    lines.append("")
    for (label, text) in summary {
      lines += hanging(bold(padded(label, to: 12)), text, to: width, minColumns: 30)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: the table

  private static let columns = [21, 4, 8, 8, 8, 8]

  private static func row(_ cells: [String]) -> String {
    zip(cells, columns).enumerated().map { index, cell in
      padded(cell.0, to: cell.1, alignsRight: index > 0)
    }.joined(separator: "  ")
  }

  // MARK: below it

  private var summary: [(String, String)] {
    let sleep = hibernates ? [("memory", memorySentence), ("image", imageSentence)] : []
    let breakEven = breakEvenSentence.map { [("break-even", $0)] } ?? []
    return sleep + breakEven + [("program", programSentence), ("machine", machine.sentence)]
  }

  private var memorySentence: String {
    let before = medianHibernation(\.anonymousBefore)
    let after = medianHibernation(\.anonymousAfter)
    return "\(size(before - after)) freed: \(size(before)) of anonymous memory before, "
      + "\(size(after)) while hibernated"
  }

  private var imageSentence: String {
    let image = medianHibernation(\.imageBytes)
    let moved = medianHibernation(\.movedBytes)
    let took = BenchStatistics(hibernations.map(\.milliseconds))?.median ?? 0
    let ratio = image > 0 ? fixed(moved / image, 1) : "?"
    let speed = took > 0 ? fixed(moved / 1_048_576 / took * 1000, 0) : "?"
    let compression = level.map { "zstd level \($0)" } ?? "lz4"
    return "\(size(image)), \(ratio) times smaller than the memory (\(compression)); "
      + "hibernating took \(millisecondsText(took)) ms, \(speed) MB/s"
  }

  /// The memory that sleep frees, and the time that the wake costs.
  private var breakEvenSentence: String? {
    // A worker would use the fastest way to resume from an image.
    let resumes = [BenchMechanism.lazy, .cached, .dropped].compactMap(median)
    guard let resume = resumes.min() else { return nil }
    var sentences: [String] = []
    if let relaunch = median(.relaunch), resume > 0 {
      sentences.append(
        "resuming is \(fixed(relaunch / resume, 1)) times as fast as relaunching "
          + "(\(millisecondsText(resume)) ms, \(millisecondsText(relaunch)) ms)")
    }
    if let floor = median(.signal), resume > floor {
      let saved = medianHibernation(\.givenBack) / 1_048_576
      sentences.append(
        "hibernating frees \(fixed(saved, 1)) MB; waking takes "
          + "\(millisecondsText(resume - floor)) ms longer than from a plain stop")
    }
    return sentences.isEmpty ? nil : sentences.joined(separator: "; ")
  }

  private var programSentence: String {
    let asked = request.map { "request: \(escaped($0))" } ?? "no request"
    return "\(shellText(command)), \(asked); first launch "
      + "\(millisecondsText(firstLaunchMilliseconds)) ms; \(rest) while hibernated"
  }

  private func size(_ bytes: Double) -> String { sizeText(Int64(bytes)) }
}
