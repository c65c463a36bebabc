import Control
import Drawing

extension BenchReport {
  /// The distributions as an SVG picture, on a logarithmic axis. Each mechanism has a row, with a
  /// dot for each measurement and a bar at the median. The background is dark if the viewer prefers
  /// that.
  public var picture: String {
    BenchPicture(self).text
  }
}

private struct BenchPicture {
  private let report: BenchReport
  private let rows: [BenchMechanismResult]
  private let axis: LogarithmicAxis

  private static let left = 190.0
  private static let plot = 560.0
  private static let top = 74.0
  private static let row = 46.0
  private static let width = 860.0

  init(_ report: BenchReport) {
    self.report = report
    rows = report.mechanisms.filter { $0.statistics != nil || $0.refusal != nil }
    axis = LogarithmicAxis(of: report.mechanisms.flatMap(\.milliseconds))
  }

  private var bottom: Double { Self.top + Double(rows.count) * Self.row }
  private var height: Double { bottom + 84 }

  private func x(_ milliseconds: Double) -> Double {
    Self.left + axis.position(of: milliseconds) * Self.plot
  }

  var text: String {
    svgDocument(
      width: Self.width, height: height,
      title: "Time from the order to wake until the first byte of the response",
      light: Self.light, dark: Self.dark,
      elements: head + grid + rows.enumerated().flatMap(strip) + foot)
  }

  // MARK: around the plot

  private static let light = """
    .dot { fill: #0969da } .mark { stroke: #cf222e }
    .halo { fill: #59636e; stroke: #ffffff; stroke-width: 5px; paint-order: stroke }
    """
  private static let dark = """
    .dot { fill: #58a6ff } .mark { stroke: #ff7b72 }
    .halo { fill: #9198a1; stroke: #0d1117 }
    """

  private var head: [String] {
    [
      label(20, 30, "Back from sleep: from the order to \(end)", size: 17, weight: "bold"),
      label(20, 50, subtitle, size: 12, kind: "dim"),
    ]
  }

  private var end: String {
    guard let request = report.request else { return "its completion" }
    return request.hasPrefix("http://") ? "the first byte of the response" : "the first success"
  }

  private var subtitle: String {
    let name = shortened(shellText(report.command), to: 84)
    return "\(name), \(report.rounds) rounds; ms, logarithmic"
  }

  private var grid: [String] {
    axis.ticks.flatMap { tick in
      let at = fixed(x(tick.value), 1)
      let line = """
        <line class="line" x1="\(at)" x2="\(at)" y1="\(fixed(Self.top, 0))" \
        y2="\(fixed(bottom, 0))" stroke-width="\(tick.isDecade ? "1.2" : "0.5")"/>
        """
      guard tick.isLabelled else { return [line] }
      return [
        line,
        label(x(tick.value), bottom + 17, tick.text, size: 11, kind: "dim", anchor: "middle"),
      ]
    }
  }

  private var foot: [String] {
    let machine = report.machine
    let first =
      "\(machine.processor), \(machine.cores) cores, Linux \(machine.kernel), "
      + "load \(fixed(machine.loadBefore, 1)) to \(fixed(machine.loadAfter, 1)), "
      + "huge pages \(machine.hugePages)"
    var lines = [first]
    if report.hibernates {
      let hibernation = BenchStatistics(report.hibernations.map(\.milliseconds))?.median ?? 0
      let given = sizeText(Int64(report.medianHibernation(\.givenBack)))
      let image = sizeText(Int64(report.medianHibernation(\.imageBytes)))
      lines.append(
        "\(given) freed, image \(image), hibernating takes \(millisecondsText(hibernation)) ms, "
          + "\(report.rest) while hibernated")
    }
    return lines.enumerated().map {
      label(20, bottom + 46 + Double($0.offset) * 18, $0.element, size: 12, kind: "dim")
    }
  }

  // MARK: one mechanism

  private func strip(_ number: Int, _ result: BenchMechanismResult) -> [String] {
    let middle = Self.top + (Double(number) + 0.5) * Self.row
    let title = label(Self.left - 14, middle + 4, result.title, size: 13, anchor: "end")
    guard let numbers = result.statistics else {
      return [
        title,
        label(
          Self.left + 8, middle + 4, shortened("not measured: \(result.refusal ?? "")", to: 96),
          size: 11, kind: "halo"),
      ]
    }
    let dots = result.milliseconds.enumerated().map { index, value in
      // The golden ratio spreads neighbouring dots, in the same way in every picture.
      let spread = (Double(index) * 0.618_034).truncatingRemainder(dividingBy: 1) - 0.5
      return """
        <circle class="dot" cx="\(fixed(x(value), 1))" cy="\(fixed(middle + spread * 20, 1))" \
        r="3.2" fill-opacity="0.55"/>
        """
    }
    let at = fixed(x(numbers.median), 1)
    let bar = """
      <line class="mark" x1="\(at)" x2="\(at)" y1="\(fixed(middle - 15, 1))" \
      y2="\(fixed(middle + 15, 1))" stroke-width="2.5"/>
      """
    let figure = label(
      Self.left + Self.plot + 16, middle + 4, "\(millisecondsText(numbers.median)) ms", size: 13,
      weight: "bold")
    return [title] + dots + [bar, figure]
  }

  private func label(
    _ x: Double, _ y: Double, _ text: String, size: Int, kind: String = "ink",
    weight: String = "normal", anchor: String = "start"
  ) -> String {
    svgText(x, y, escaped(text), size: size, kind: kind, weight: weight, anchor: anchor)
  }
}
