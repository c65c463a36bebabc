import Drawing
import Glibc

// The two plots of `FleetPicture`.

extension FleetPicture {
  // MARK: waiting against memory

  /// The plot of waiting time against memory. Points at the lower left are better: less memory,
  /// less waiting.
  var trade: [String] {
    let hours = max(comparison.hours, 0.01)
    let points = reports.map { ($0.memoryGigabyteHours / hours, $0.all.mean) }
    let maxMemory = points.map(\.0).max() ?? 1
    let x = Scale(from: 0, to: max(maxMemory, 0.001) * 1.15, at: 70, until: Self.right - 90)
    let waits = points.map(\.1).filter { $0 > 0 }
    let y = LogScale(
      axis: LogarithmicAxis(of: [(waits.min() ?? 0.1) / 1.5, (waits.max() ?? 10) * 1.5]),
      at: tradeBottom, until: tradeTop)
    var lines = [
      svgText(
        24, tradeTop - 24, "Wait against memory", size: 13, weight: "bold"),
      svgText(
        350, tradeTop - 24,
        "mean wait of all uses (ms, log) over average memory use (GB): lower left is better",
        size: 11, kind: "dim"),
    ]
    for tick in y.ticks {
      lines.append(svgLine(70, y(tick), Self.right, y(tick)))
      lines.append(svgText(62, y(tick) + 4, short(tick), size: 11, kind: "dim", anchor: "end"))
    }
    for tick in x.ticks {
      lines.append(
        svgText(
          x(tick), tradeBottom + 18, "\(short(tick)) GB", size: 11, kind: "dim", anchor: "middle"))
    }
    let dots = points.map { (x: x($0.0), y: y($0.1)) }
    for (index, at) in dots.enumerated() { lines.append(dot(at.x, at.y, color(index), radius: 7)) }
    return lines + names(of: dots)
  }

  /// The names beside the dots. They are moved down until they cover neither a dot nor each other.
  private func names(of dots: [(x: Double, y: Double)]) -> [String] {
    var taken = dots.map { (from: $0.x - 8, to: $0.x + 8, y: $0.y) }
    return reports.enumerated().map { index, report in
      let text = "\(comparison.title(report)): \(short(report.all.mean)) ms"
      let width = Double(text.count) * 6.5
      let isLeft = dots[index].x > 620
      let start = isLeft ? dots[index].x - 12 - width : dots[index].x + 12
      var line = dots[index].y
      while taken.contains(where: {
        $0.from < start + width && start < $0.to && ($0.y - line).magnitude < 14
      }) { line += 14 }
      taken.append((start, start + width, line))
      return svgText(
        isLeft ? start + width : start, line + 4, text, size: 11, kind: "halo",
        anchor: isLeft ? "end" : "start")
    }
  }

  // MARK: the tail

  /// The plot of how many of a million uses waited longer than a given time.
  var tail: [String] {
    let x = LogScale(axis: LogarithmicAxis(of: [0.5, longest]), at: 70, until: Self.right)
    let y = LogScale(
      axis: LogarithmicAxis(of: [1, maxPerMillion * 1.3]), at: tailBottom, until: tailTop)
    var lines = [
      svgText(24, tailTop - 24, "The longest waits", size: 13, weight: "bold"),
      svgText(
        350, tailTop - 24,
        "number of uses in a million that waited longer than … (both axes log): lower is better",
        size: 11, kind: "dim"),
    ]
    for tick in y.ticks {
      lines.append(svgLine(70, y(tick), Self.right, y(tick)))
      lines.append(svgText(62, y(tick) + 4, short(tick), size: 11, kind: "dim", anchor: "end"))
    }
    for tick in x.ticks {
      lines.append(svgLine(x(tick), tailTop, x(tick), tailBottom))
      let text = tick < 1000 ? "\(short(tick)) ms" : "\(short(tick / 1000)) s"
      lines.append(svgText(x(tick), tailBottom + 18, text, size: 11, kind: "dim", anchor: "middle"))
    }
    for (index, report) in reports.enumerated() {
      let path = report.tail.compactMap { point -> String? in
        let rate = perMillion(point.uses, report)
        guard rate >= 1, point.milliseconds <= longest else { return nil }
        return "\(fixed(x(point.milliseconds), 1)),\(fixed(y(rate), 1))"
      }
      lines.append(
        "<polyline fill=\"none\" stroke=\"\(color(index))\" stroke-width=\"2.2\" "
          + "\(index >= Self.colors.count / 2 ? "stroke-dasharray=\"6 3\" " : "")"
          + "points=\"\(path.joined(separator: " "))\"/>")
    }
    return lines + key
  }

  /// The key of the plot. It is below the lines, which begin at the top left.
  private var key: [String] {
    reports.enumerated().flatMap { index, report in
      let y = tailBottom - 8 - Double(reports.count - 1 - index) * 16
      return [
        dot(86, y - 4, color(index)),
        svgText(96, y, comparison.title(report), size: 11, kind: "halo"),
      ]
    }
  }

  private var longest: Double {
    let ends = reports.compactMap { report in
      report.tail.last { perMillion($0.uses, report) >= 1 }?.milliseconds
    }
    return max(10, (ends.max() ?? 1000) * 1.2)
  }

  private var maxPerMillion: Double {
    max(10, reports.map { perMillion($0.tail.first?.uses ?? 0, $0) }.max() ?? 10)
  }

  private func perMillion(_ uses: Int, _ report: FleetReport) -> Double {
    Double(uses) * 1e6 / Double(max(1, report.uses))
  }

  private func short(_ value: Double) -> String {
    if value >= 1_000_000 { return "\(fixed(value / 1_000_000, 0)) M" }
    if value >= 10_000 { return "\(fixed(value / 1000, 0)) k" }
    return value >= 100 || value == value.rounded()
      ? fixed(value, 0) : fixed(value, value >= 10 ? 1 : value >= 1 ? 2 : 3)
  }
}

/// A linear axis.
struct Scale {
  var from: Double
  var to: Double
  var at: Double
  var until: Double

  func callAsFunction(_ value: Double) -> Double {
    at + (value - from) / max(to - from, 1e-9) * (until - at)
  }

  /// About five values at round numbers.
  var ticks: [Double] {
    let raw = (to - from) / 5
    let unit = pow(10, log10(max(raw, 1e-9)).rounded(.down))
    let step = [1, 2, 5, 10].map { $0 * unit }.first { $0 >= raw } ?? raw
    return stride(from: from, through: to, by: step).map { $0 }
  }
}

/// A logarithmic axis of a plot.
struct LogScale {
  var axis: LogarithmicAxis
  var at: Double
  var until: Double

  func callAsFunction(_ value: Double) -> Double { at + axis.position(of: value) * (until - at) }

  /// The powers of ten, and 2 and 5 times each power if there are few.
  var ticks: [Double] {
    let ticks = axis.ticks.filter(\.isLabelled)
    let tens = ticks.filter(\.isDecade)
    return (tens.count < 3 ? ticks : tens).map(\.value)
  }
}
