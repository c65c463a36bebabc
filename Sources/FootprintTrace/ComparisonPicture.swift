import Control
import Drawing

extension RecordingComparison {
  /// Draws an SVG: both footprints on the same axes, and a line of numbers for each.
  public func picture(_ a: Recording, _ b: Recording) -> String {
    let frame = PictureFrame(
      maxBytes: max(self.a.statistics.peak, self.b.statistics.peak),
      seconds: max(a.seconds, b.seconds))
    let sides = [("a", "A", self.a, a), ("b", "B", self.b, b)]
    let names = sides.map { "\($0.1): \(escaped($0.2.name)), \($0.2.statistics.sentence)" }
    let curves = sides.map { letter, _, _, recording in
      let path = StepPath(recording, frame)
      return """
        <path class="fill\(letter)" fill-opacity="0.12" d="\(path.area(\.footprint))"/>
        <path class="\(letter)" d="\(path.outline(\.footprint))"/>
        """
    }
    return PictureFrame.document(
      height: PictureFrame.lower + 40, title: "Two footprints", description: sentence(names),
      subtitle: peakSentence,
      frame.grid + frame.limitLine(self.a.statistics.limit) + curves
        + sides.flatMap { warnings(of: $0.0, statistics: $0.2.statistics, in: frame) } + key(names))
  }

  private var peakSentence: String {
    guard let peak = metric("peak") else { return "" }
    let change =
      peak.percent.map { percentText($0.magnitude) } ?? shortSizeText(Int64(peak.difference))
    if peak.difference == 0 { return "both have the same peak" }
    return "the peak of B is \(change) \(peak.difference > 0 ? "higher" : "lower") than that of A"
  }

  private func sentence(_ names: [String]) -> String {
    "Two footprints over time, as steps. \(names.joined(separator: ". ")). \(peakSentence)."
  }

  private func key(_ names: [String]) -> [String] {
    zip(["a", "b"], names).enumerated().flatMap { index, entry in
      let y = 70 + Double(index) * 17
      return [
        """
        <rect class="fill\(entry.0)" x="24" y="\(fixed(y, 1))" width="11" height="11" rx="2"/>
        """,
        svgText(41, y + 10, shortened(entry.1, to: 130), size: 12),
      ]
    }
  }

  /// Draws a triangle at each warning, on the curve of its recording.
  private func warnings(
    of letter: String, statistics: RecordingStatistics, in frame: PictureFrame
  ) -> [String] {
    statistics.warnings.map { warning in
      let (x, y) = (frame.x(warning.at), frame.y(warning.before))
      let points = [(x - 5, y - 12), (x + 5, y - 12), (x, y - 3)]
        .map { "\(fixed($0.0, 1)),\(fixed($0.1, 1))" }.joined(separator: " ")
      return """
        <g><title>\(xmlText(warning.sentence))</title>\
        <polygon class="fill\(letter)" points="\(points)"/></g>
        """
    }
  }
}
