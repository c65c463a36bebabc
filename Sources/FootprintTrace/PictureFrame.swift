import Drawing

/// The axes of a picture, with their grid, labels and styles. Sizes are in pixels.
struct PictureFrame {
  /// The number of bytes at the upper end of the axis.
  let top: Int64
  let seconds: Double
  private let step: Int64

  static let width = 960.0
  static let left = 84.0
  static let right = 936.0
  static let upper = 112.0
  static let lower = 392.0

  init(maxBytes: Int64, seconds: Double) {
    let maxBytes = max(maxBytes, 1024)
    let step = RoundSteps.bytes(upTo: maxBytes, count: 5)
    self.step = step
    top = (maxBytes + step - 1) / step * step
    self.seconds = max(seconds, 1e-3)
  }

  func x(_ moment: Double) -> Double {
    Self.left + min(max(moment / seconds, 0), 1) * (Self.right - Self.left)
  }

  func y(_ bytes: Int64) -> Double {
    Self.lower - Double(bytes) / Double(top) * (Self.lower - Self.upper)
  }

  /// The lines and labels that are drawn behind the curves.
  var grid: [String] {
    stride(from: Int64(0), through: top, by: Int64.Stride(step)).flatMap { bytes in
      [
        svgLine(Self.left, y(bytes), Self.right, y(bytes)),
        svgText(
          Self.left - 8, y(bytes) + 4, bytes == 0 ? "0" : shortSizeText(bytes), size: 11,
          kind: "dim",
          anchor: "end"),
      ]
    } + timeAxis
  }

  private var timeAxis: [String] {
    let every = RoundSteps.seconds(upTo: seconds, count: 8)
    return (0...Int(seconds / every + 1e-9)).flatMap { number in
      let moment = Double(number) * every
      return [
        svgLine(x(moment), Self.lower, x(moment), Self.lower + 5),
        svgText(
          x(moment), Self.lower + 19, number == 0 ? "0" : momentText(moment, step: every),
          size: 11, kind: "dim", anchor: "middle"),
      ]
    }
  }

  /// Draws the line of the limit, unless it would be at the edge.
  func limitLine(_ bytes: Int64) -> [String] {
    guard bytes > 0, bytes < top else { return [] }
    let line = svgLine(Self.left, y(bytes), Self.right, y(bytes), kind: "limit")
    // The axis has a label at this height already.
    if bytes % step == 0 { return [line] }
    return [
      line,
      svgText(
        Self.right - 4, y(bytes) - 4, shortSizeText(bytes), size: 10, kind: "halo", anchor: "end"),
    ]
  }

  // MARK: the whole picture

  /// Makes the SVG document. Screen readers read `title` and `description`.
  static func document(
    height: Double, title: String, description: String, subtitle: String, _ elements: [String]
  ) -> String {
    let head = [
      svgText(24, 32, title, size: 17, weight: "bold"),
      svgText(24, 52, subtitle, size: 12, kind: "dim"),
    ]
    return svgDocument(
      width: width, height: height, title: title, description: description, light: light,
      dark: dark, elements: head + elements)
  }

  // Colour-blind people can distinguish these colours (Okabe and Ito 2008).
  private static let light = """
    .limit { stroke: #8c959f; stroke-dasharray: 5 4 } .mark { stroke: #d55e00; \
    stroke-dasharray: 3 3 }
    .warned { fill: #b34700 } .halo { fill: #59636e; stroke: #ffffff; \
    stroke-width: 4px; paint-order: stroke }
    .anonymous { fill: #0072b2 } .copied { fill: #56b4e9 } .shared { fill: #009e73 } \
    .swapped { fill: #e69f00 }
    .outline, .a, .b { fill: none; stroke-width: 2 } .outline { stroke: #004b76 }
    .a { stroke: #0072b2 } .b { stroke: #d55e00 } .filla { fill: #0072b2 } .fillb { fill: #d55e00 }
    .foreground { fill: #8fd6b8 } .background { fill: #a8d4ee } .suspended { fill: #f2d58a }
    .hibernated { fill: #b9b4e0 } .terminated { fill: #d1d9e0 } .moving { fill: #e3c4d6 } \
    .strip { fill: #1f2328 }
    """
  private static let dark = """
    .limit { stroke: #6e7681 } .mark { stroke: #ff9b57 } .warned { fill: #ff9b57 }
    .halo { fill: #9198a1; stroke: #0d1117 } .anonymous { fill: #2f81c7 } \
    .outline { stroke: #a5d6ff }
    .a { stroke: #58a6ff } .b { stroke: #ff9b57 } .filla { fill: #58a6ff } .fillb { fill: #ff9b57 }
    .foreground { fill: #1b6b4e } .background { fill: #1d5478 } .suspended { fill: #7a5d12 }
    .hibernated { fill: #4b4588 } .terminated { fill: #3d444d } .moving { fill: #6b3f58 } \
    .strip { fill: #e6edf3 }
    """
}

/// A footprint as a path of steps.
struct StepPath {
  /// The maximum number of samples that are drawn: two for each pixel. If there are more, the
  /// highest of each half pixel is drawn.
  private static let maxSamples = Int(PictureFrame.right - PictureFrame.left) * 2

  let samples: [FootprintSample]
  let end: Double
  let frame: PictureFrame

  init(_ recording: Recording, _ frame: PictureFrame) {
    self.frame = frame
    end = recording.seconds
    guard recording.samples.count > Self.maxSamples else {
      samples = recording.samples
      return
    }
    let width = recording.seconds / Double(Self.maxSamples)
    samples = (0..<Self.maxSamples).compactMap { index in
      let start = width * Double(index)
      guard var sample = recording.largest(from: start, to: start + width) else { return nil }
      sample.at = start
      return sample
    }
  }

  /// The upper edge of the curve, from left to right.
  func outline(_ height: (FootprintSample) -> Int64) -> String {
    guard let first = samples.first else { return "" }
    // The path begins at the left edge. Before the first sample, the first sample's value counts.
    var path = "M\(fixed(frame.x(0), 1)),\(fixed(frame.y(height(first)), 1))"
    var last = height(first)
    for sample in samples.dropFirst() where height(sample) != last {
      last = height(sample)
      path += "H\(fixed(frame.x(sample.at), 1))V\(fixed(frame.y(last), 1))"
    }
    return path + "H\(fixed(frame.x(end), 1))"
  }

  /// The area between the outline and the lower edge of the plot.
  func area(_ height: (FootprintSample) -> Int64) -> String {
    let floor = fixed(PictureFrame.lower, 1)
    return outline(height) + "V\(floor)H\(fixed(frame.x(0), 1))Z"
  }
}
