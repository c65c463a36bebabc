import Drawing

extension FleetComparison {
  /// Draws an SVG with three parts: the states of the workers when they were used; the waiting time
  /// against the memory used; and the tail of the waiting times. The picture has its own
  /// background, which is dark if the viewer prefers that.
  public var picture: String { FleetPicture(comparison: self).text }
}

struct FleetPicture {
  let comparison: FleetComparison
  var reports: [FleetReport] { comparison.reports }

  static let width = 960.0
  static let left = 230.0
  static let right = 930.0
  static let row = 30.0
  /// Colours that colour-blind people can distinguish (Okabe and Ito 2008).
  static let colors = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a400",
    "#5d3a9b", "#8c564b",
  ]

  var barsTop: Double { 96 }
  var tradeTop: Double { barsTop + Double(reports.count) * Self.row + 92 }
  var tradeBottom: Double { tradeTop + 240 }
  var tailTop: Double { tradeBottom + 104 }
  var tailBottom: Double { tailTop + 260 }
  var height: Double { tailBottom + 64 }

  var text: String {
    svgDocument(
      width: Self.width, height: height, title: "Policies compared by simulation",
      light: Self.light, dark: ".halo { fill: #e6edf3; stroke: #0d1117 } .hot { fill: #3d444d }",
      elements: head + bars + trade + tail)
  }

  func color(_ index: Int) -> String { Self.colors[index % Self.colors.count] }

  private static let light = """
    .halo { fill: #1f2328; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
    .hot { fill: #c9d1d9 } .suspended { fill: #7fb8da } .hibernated { fill: #0072b2 }
    .cold { fill: #d55e00 } .onhibernated { fill: #ffffff }
    """

  private var head: [String] {
    let about = """
      \(comparison.workers) workers, \(fixed(comparison.hours, 1)) h, \(comparison.uses) uses; \
      together they would hold \(fixed(comparison.footprintGigabytes, 1)) GB, the machine has \
      \(fixed(comparison.memoryGigabytes, 1)) GB
      """
    return [
      svgText(24, 34, "Policies compared: \(comparison.trace)", size: 18, weight: "bold"),
      svgText(24, 54, about, size: 12, kind: "dim"),
    ]
  }

  // MARK: the states of workers when they were used

  /// The bars of the first part. Most uses find their worker running and would fill the bar, so
  /// only the other states are drawn.
  private var bars: [String] {
    let shares = reports.map { 1 - $0.share(.hot) }
    let maxShare = max(shares.max() ?? 0, 1e-6) * 1.02
    var lines = [
      svgText(
        24, barsTop - 12, "State of the worker when a use came", size: 13,
        weight: "bold"),
      legend,
    ]
    for (index, report) in reports.enumerated() {
      let y = barsTop + Double(index) * Self.row
      var x = Self.left
      lines.append(dot(30, y + 11, color(index)))
      lines.append(svgText(42, y + 15, comparison.title(report), size: 12))
      for state in [FleetReport.StateAtUse.suspended, .hibernated, .cold] {
        let width = report.share(state) / maxShare * (Self.right - Self.left - 130)
        lines.append(
          "<rect class=\"\(state.rawValue)\" x=\"\(fixed(x, 1))\" y=\"\(fixed(y, 1))\" "
            + "width=\"\(fixed(width, 1))\" height=\"22\"/>")
        x += width
      }
      let cold =
        "\(fixed(report.share(.cold) * 100, 2)) % cold, \(fixed(report.share(.hot) * 100, 1)) % hot"
      lines.append(svgText(x + 8, y + 15, cold, size: 11, kind: "dim"))
    }
    return lines
  }

  private var legend: String {
    var x = 420.0
    return [
      (FleetReport.StateAtUse.suspended, "suspended (about 1 ms)"),
      (.hibernated, "hibernated (tens of ms)"), (.cold, "cold: launched"),
    ].map { state, text in
      defer { x += 175 }
      return
        "<rect class=\"\(state.rawValue)\" x=\"\(x)\" y=\"\(barsTop - 22)\" "
        + "width=\"11\" height=\"11\"/>"
        + svgText(x + 16, barsTop - 12, text, size: 11, kind: "dim")
    }.joined(separator: "\n")
  }

  // MARK: parts

  func dot(_ x: Double, _ y: Double, _ color: String, radius: Double = 5) -> String {
    "<circle cx=\"\(fixed(x, 1))\" cy=\"\(fixed(y, 1))\" r=\"\(fixed(radius, 1))\" "
      + "fill=\"\(color)\"/>"
  }
}
